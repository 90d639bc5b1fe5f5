"""Each chart is drawn, and says what it shows."""

import sys

import pytest
from scipy import stats

import dpframe.theory as t
from dpframe import errors

pytest.importorskip("altair")


def charts():
    u, v = stats.laplace(37, 25), stats.laplace(25, 25)
    return {
        "densities": t.plots.densities(u, v),
        "densities with S": t.plots.densities(u, v, over=(40, 80), names=("with", "without")),
        "event": t.plots.event(u, v, over=(40, 80)),
        "averaged pair": t.plots.averaged_pair(0.5),
        "errors": t.plots.relative_errors({"one": [0.1, 0.2], "two": [1.0, 0.0]}),
        "sensitivities": t.plots.sensitivities({"mean": {1: 1.0, 2: 2.0}}, unit="days"),
    }


@pytest.mark.parametrize("name", charts())
def test_charts_are_drawn(name):
    convert = pytest.importorskip("vl_convert")
    chart = charts()[name]
    assert convert.vegalite_to_png(chart.to_json()).startswith(b"\x89PNG")


def test_the_event_states_the_log_ratio():
    assert (
        "0.48"
        in t.plots.event(stats.laplace(37, 25), stats.laplace(25, 25), over=(40, 80)).to_json()
    )


def test_without_altair_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(errors.UnsupportedOperation, match=r"pip install altair"):
        t.plots.averaged_pair()
