from sameworld.cli.console import Grid, progress_bar, say_grid
from sameworld.core.progress import Progress


def test_cells_and_headers_are_printed_as_they_are(capsys):
    rows = (("[bold]x[/bold]", "1"),)
    say_grid(Grid(title="a [s] table", header=("gap [s]", "n"), rows=rows))
    page = capsys.readouterr().out
    assert "a [s] table" in page and "gap [s]" in page and "[bold]x[/bold]" in page


def test_progress_without_a_terminal_is_one_line_per_begin_and_end(capsys):
    with progress_bar() as report:
        for done in range(5):
            report(Progress(stage="screening", done=done, total=4, message=f"cost {done}"))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["screening: 0/4 cost 0", "screening: 4/4 cost 4"]
