"""LeRobot datasets, read and written by their format: no LeRobot is needed."""

from sameworld.store.lerobot.info import LerobotFeature, LerobotInfo, lerobot_info
from sameworld.store.lerobot.read import read_lerobot

__all__ = ["LerobotFeature", "LerobotInfo", "lerobot_info", "read_lerobot"]
