import io

from dpframe import progress


def test_the_line_is_silent_unless_seen_and_long(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(progress, "_PATIENCE", 3600)
    assert list(progress.watched(range(3), 3, "things")) == [0, 1, 2]
    assert terminal.getvalue() == "", "it was quick"
    monkeypatch.setattr(progress, "_PATIENCE", 0)
    assert list(progress.watched(range(3), 3, "things")) == [0, 1, 2]
    assert "3 of 3 things" in terminal.getvalue()
    assert list(progress.watched(range(3), 3, "things", show=False)) == [0, 1, 2]
