import io
import threading

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


def test_seconds_are_shown_while_somebody_waits(monkeypatch):
    terminal, shown = io.StringIO(), threading.Event()
    terminal.isatty = lambda: True
    write = terminal.write
    terminal.write = lambda text: (write(text), shown.set())[0]
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(progress, "_PATIENCE", 3600)
    with progress.waited("reading rows"):
        pass
    assert terminal.getvalue() == "", "it was quick"
    monkeypatch.setattr(progress, "_PATIENCE", 0)
    with progress.waited("reading rows"):
        assert shown.wait(60)
    assert "\rreading rows, 0 s" in terminal.getvalue()
    assert terminal.getvalue().endswith("\n")
    terminal.isatty = lambda: False
    before = terminal.getvalue()
    with progress.waited("reading rows"):
        pass
    assert terminal.getvalue() == before
