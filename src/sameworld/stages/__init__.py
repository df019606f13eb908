"""The verbs; each is one public function and no stage imports another."""
