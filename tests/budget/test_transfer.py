"""Parts of a budget that move: whatever the order of events, all releases
together stay within the promise.
"""

import datetime as dt
import itertools
import random
from fractions import Fraction
from functools import partial

import pytest

import dpframe as dp
from dpframe import errors
from dpframe.budget import Ledger, Loss, account
from dpframe.theory.formulas.loss import TwoSums, pure_to_gdp
from inside import book_of

WHO = "unit 'id', add-remove"
REFUSED = (errors.BudgetExceeded, errors.UnsupportedOperation)
EVENTS = ("a", "b", "direct", "a to b", "b to a", "close a", "close b")


def price(terms, amount):
    return (Loss.charged_rho if terms == "rho" else Loss.charged)(Fraction(amount), Fraction(0))


def pay(purse, amount, **options):
    receipt = purse.charge(price(purse.terms, amount), WHO, "count()", **options)
    purse.store(receipt, b"table", {"releases": []})


class World:
    """A budget with two allowances, and what was released of each, counted by an
    account that knows no allowance.
    """

    def __init__(self, budget, unit, *, begins=None):
        """Input: begins: for an account of two sums, whether they begin before
        "a", before "b" or after both.
        """
        self.budget, self.unit, self.purses, self.prices = budget, unit, {}, []
        for name in ("a", "b", "last"):
            if begins == name:
                while self.total.split is None:
                    pay(budget, "1/1000")
            if name != "last":
                self.purses[name] = budget.allocate(name=name, **{self.term: 2 * unit})

    @property
    def term(self):
        return "rho" if self.budget.terms == "rho" else "epsilon"

    @property
    def total(self):
        return book_of(self.budget).spent()

    def happen(self, event):
        """Whether it is accepted."""
        verb, *names = event.split()
        try:
            if verb == "close":
                self.purses[names[0]].close()
            elif names:
                self.purses[verb].transfer(self.purses[names[-1]], **{self.term: self.unit})
            else:
                pay(self.purses.get(verb, self.budget), self.unit)
                paid_late = self.purses[verb]._opening.body["loss"] if verb in self.purses else {}
                late = self.total.split is not None and paid_late.get("mu_squared", "1/1") != "0/1"
                self.prices.append((self.unit, late))
        except REFUSED:
            return False
        assert self.holds(), event
        return True

    def spend(self, verb):
        while self.happen(verb):
            pass

    def holds(self):
        """Whether all releases so far are within the limit, each charged by itself."""
        limit, spent = self.budget.limit, self.total
        if spent.split is None:
            return sum(amount for amount, _ in self.prices) <= (
                limit.exact_rho or limit.exact_epsilon
            )
        early, late = (
            [amount for amount, is_late in self.prices if is_late is kind] for kind in (False, True)
        )
        left = limit - spent.before
        sums = TwoSums(left.exact_epsilon, left.exact_delta, spent.split)
        squares = sum(map(pure_to_gdp, late), Fraction(0))
        return sum(early) <= spent.before.exact_epsilon and sums.holds(
            sum(late, Fraction(0)), Fraction(0), squares
        )


def hold_every_order(make, length, *, whole):
    """All sequences of events, after which all is spent that can be.
    Input: whole: whether nothing is given up.
    """
    happened = dict.fromkeys(EVENTS, 0)
    for events in itertools.product(EVENTS, repeat=length):
        world = make()
        for event in events:
            happened[event] += world.happen(event)
        for purse in world.purses:
            world.spend(purse)
            world.happen(f"close {purse}")
        world.spend("direct")
        if whole:
            assert sum(amount for amount, _ in world.prices) == 5 * world.unit, events
    return happened


EASY = {
    "basic": ({"epsilon": 5}, Fraction(1)),
    "rho": ({"rho": 0.5}, Fraction(1, 10)),
    "prices that add up": ({"epsilon": 5, "delta": 1e-6}, Fraction(1)),
}


@pytest.mark.parametrize("length", [2, pytest.param(4, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", EASY)
def test_every_order_of_events_spends_the_limit_and_no_more(kind, length):
    limit, unit = EASY[kind]
    happened = hold_every_order(lambda: World(dp.Budget(**limit), unit), length, whole=True)
    assert all(happened.values()), happened


@pytest.mark.parametrize("length", [1, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("begins", ["a", "b", "last"])
def test_every_order_of_events_stays_within_one_of_two_sums(begins, length):
    make = partial(World, unit=Fraction(1, 50), begins=begins)
    happened = hold_every_order(lambda: make(dp.Budget(epsilon=1, delta=1e-6)), length, whole=False)
    apart = begins == "b"  # one was paid before the sums began, and the other one after it
    assert {event for event, times in happened.items() if not times} == (
        {"a to b", "b to a"} if apart else set()
    )


def test_the_square_of_an_epsilon_grows_faster_than_it():
    """f(a) + f(b) <= f(a + b), which is why an allowance may count once for all its releases."""
    amounts = [Fraction(10) ** power * digit for power in range(-9, 3) for digit in (1, 2, 5)]
    for one, other in itertools.combinations_with_replacement(amounts, 2):
        assert pure_to_gdp(one) + pure_to_gdp(other) <= pure_to_gdp(one + other) * (
            1 + Fraction(1, 10**12)
        )


def test_what_is_returned_before_it_is_spent_elsewhere_would_be_too_much():
    """The negative control: an account that returned the whole part of a closed
    allowance goes beyond the limit.
    """
    world = World(dp.Budget(epsilon=5), Fraction(1))
    world.happen("a")
    book_of(world.budget)._page.spent = book_of(world.budget).spent() - price("epsilon", 2)
    world.spend("b")
    world.spend("a")
    with pytest.raises(AssertionError):
        world.spend("direct")


# In a ledger: periods, caps, holders


@pytest.fixture
def clock(monkeypatch):
    time = [dt.datetime(2026, 11, 21, 22, tzinfo=dt.UTC)]
    monkeypatch.setattr(account, "now", lambda: time[0])

    def forward(**by):
        time[0] += dt.timedelta(**by)

    return forward


@pytest.mark.parametrize(
    ("limit", "carry", "events"),
    [
        ({"epsilon": 6}, False, 50),
        ({"rho": 0.6}, True, 50),
        *(
            pytest.param(limit, carry, 300, marks=pytest.mark.long)
            for limit in ({"epsilon": 6}, {"rho": 0.6}, {"epsilon": 6, "delta": 1e-6})
            for carry in (False, True)
        ),
    ],
)
def test_nights_in_any_order_of_events_add_up(tmp_path, clock, limit, carry, events):
    """What is moved can be spent in the night in which it is moved, or
    later where nights carry over.
    """
    rng, ledger = random.Random(f"{carry}{limit}"), Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("b", **limit, caps={"spender": limit.get("rho", 6) * 2 / 3})
    term, unit = ("rho", Fraction(1, 100)) if "rho" in limit else ("epsilon", Fraction(1, 10))
    shared = {"nights": 4, "carry": carry, "start": "2026-11-21", term: unit * 16}
    purses = {who: budget.for_spender(who).allocate(name=who, **shared) for who in ("ana", "bo")}
    held, seen = dict.fromkeys(("ana", "bo"), unit * 16), set()
    spent, gained = {}, {}
    for _ in range(events):
        who, other = rng.sample(["ana", "bo"], 2)
        event = rng.choice(
            ["pay"] * 6 + ["move"] * 4 + ["night"] + (["close"] if rng.random() < 0.02 else [])
        )
        amount, night = unit * rng.randint(1, 3), purses[who].pace.night(account.now())
        try:
            if event == "night":
                clock(hours=6)
            elif event == "pay":
                pay(purses[who], amount)
                spent[who, night] = spent.get((who, night), 0) + amount
            elif event == "move":
                purses[who].transfer(purses[other], **{term: amount})
                held[who], held[other] = held[who] - amount, held[other] + amount
                for name, change in ((who, -amount), (other, amount)):
                    gained[name, night] = gained.get((name, night), 0) + change
            else:
                purses[who].close()
                held[who] = sum(amount for (name, _), amount in spent.items() if name == who)
            seen.add(event)
        except REFUSED:
            continue
        for name in held:
            until = range(night + 1) if carry else [night]
            most = unit * 4 * len(until) + sum(gained.get((name, n), 0) for n in until)
            assert sum(spent.get((name, n), 0) for n in until) <= most
            counted = budget.spenders[name]
            assert (counted.exact_rho if term == "rho" else counted.exact_epsilon) == held[name]
            assert held[name] <= unit * 40
    assert seen >= {"pay", "move", "night"}
    ledger.verify()


def test_a_part_goes_to_another_and_back(tmp_path):
    ledger = Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("visits", epsilon=2)
    bo, ana = (budget.for_spender(name).allocate(name=name, epsilon=1) for name in ("bo", "ana"))
    assert bo.transfer("ana", epsilon=0.5).epsilon == 0.5
    assert ana.transfer("bo", epsilon=0.25).epsilon == 0.25
    assert (bo.limit.epsilon, ana.limit.epsilon, budget.spent.epsilon) == (0.75, 1.25, 2)
    pay(ana, "1.24")
    with pytest.raises(
        errors.BudgetExceeded, match=r"The transfer takes ε = 0.1, and ε = 0.01 is left"
    ):
        ana.transfer(bo, epsilon=0.1)
    with pytest.raises(errors.BudgetExceeded):
        pay(bo, "0.8")
    pay(bo, "0.5")
    assert bo.close().epsilon == 0.25
    assert budget.remaining.epsilon == 0.25
    for spend in (lambda: pay(bo, "0.01"), lambda: bo.transfer("ana", epsilon=0.01)):
        with pytest.raises(errors.BudgetExceeded, match="was closed at"):
            spend()
    with pytest.raises(errors.UnsupportedOperation, match="was closed at"):
        bo.close()
    with pytest.raises(errors.UnsupportedOperation, match="closed"):
        ana.transfer(bo, epsilon=0.01)
    assert {name: loss.epsilon for name, loss in budget.spenders.items()} == {
        "bo": 0.5,
        "ana": 1.25,
    }
    statuses = ["open", "open", "given", "given", "released", "released", "given"]
    assert [line.status for line in budget.history()] == statuses
    again = Ledger(tmp_path / "a.sqlite").budget("visits").allocate(name="bo")
    assert "closed at" in repr(again)
    assert "closed on" in repr(budget.forecast())
    with pytest.raises(
        errors.ReleaseMismatch, match=r"The part 'bo' was closed at .*allocate\(name='bo 2', ...\)"
    ):
        budget.allocate(name="bo", epsilon=0.2)
    budget.allocate(name="bo 2", epsilon=0.25)
    assert "ε = 2 of 2 spent, 0 left" in budget.forecast().words[0], (
        "what was returned is no longer spent"
    )
    assert budget.forecast().table.filter(of="budget")["total"].to_list()[-1] == 2
    ledger.verify()


@pytest.mark.parametrize("kept", [True, False])
def test_a_cap_of_a_spender_holds_for_what_is_received(tmp_path, kept):
    limit = {"epsilon": 3, "caps": {"spender": 1}}
    budget = Ledger(tmp_path / "a.sqlite").budget("visits", **limit) if kept else dp.Budget(**limit)
    bo, ana = (budget.for_spender(name).allocate(name=name, epsilon=1) for name in ("bo", "ana"))
    before = budget.history()
    with pytest.raises(errors.CapExceeded, match="'ana'"):
        bo.transfer(ana, epsilon=0.5)
    assert budget.history() == before
    assert ana.close().epsilon == 1
    budget.for_spender("ana").allocate(name="again", epsilon=0.5)
    bo.transfer("again", epsilon=0.5)
    with pytest.raises(errors.CapExceeded):
        bo.transfer("again", epsilon=0.1)
    pay(bo, "0.25")
    bo.close()
    parts = [budget.for_spender("bo").allocate(name=name, epsilon=0.25) for name in ("one", "two")]
    parts[0].transfer(parts[1], epsilon=0.25)  # in one hand
    assert {name: loss.epsilon for name, loss in budget.spenders.items()} == {"bo": 0.75, "ana": 1}


def test_a_part_that_adds_up_rho_is_returned_whole_or_not_at_all():
    budget = dp.Budget(epsilon=2, delta=1e-6)
    nights, others = (
        budget.allocate(nights=90, epsilon=0.5, delta=1e-7, name=name) for name in ("a", "b")
    )
    assert nights.accountant == "zcdp"
    with pytest.raises(errors.UnsupportedOperation, match="no part of it is a part of ε"):
        nights.transfer(others, rho=1e-9)
    assert (others.close().epsilon, budget.spent.epsilon) == (0.5, 0.5)
    pay(nights, nights.share.exact_rho)
    assert (nights.close().epsilon, budget.spent.epsilon) == (0, 0.5)


@pytest.mark.parametrize("to", ["nobody", 7, None, "same", "another budget's"])
def test_a_part_goes_to_an_allowance_of_the_same_budget(to):
    budget, other = dp.Budget(epsilon=2), dp.Budget(epsilon=2)
    bo = budget.allocate(name="bo", epsilon=1)
    to = {"same": bo, "another budget's": other.allocate(name="bo", epsilon=0.5)}.get(to, to)
    with pytest.raises(errors.InvalidArgument):
        bo.transfer(to, epsilon=0.1)
    assert budget.spent.epsilon == 1


@pytest.mark.parametrize(
    "amount", [{}, {"rho": 0.1}, {"epsilon": 0}, {"epsilon": "1"}, {"epsilon": 0.1, "delta": 2}]
)
def test_an_amount_is_typed_as_a_price(amount):
    budget = dp.Budget(epsilon=2)
    bo, _ = (budget.allocate(name=name, epsilon=1) for name in ("bo", "ana"))
    with pytest.raises(errors.InvalidPrice):
        bo.transfer("ana", **amount)


@pytest.mark.parametrize("step", [1, 2])
def test_a_move_that_is_killed_half_way_moved_nothing(tmp_path, monkeypatch, step):
    ledger = Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("visits", epsilon=2)
    bo, ana = (budget.allocate(name=name, epsilon=1) for name in ("bo", "ana"))
    from dpframe.budget.ledger.book import LedgerPage

    append, calls = LedgerPage.append, []

    def killed(self, *args, **options):
        calls.append(1)
        if len(calls) == step:
            raise KeyboardInterrupt
        return append(self, *args, **options)

    for move in (lambda: bo.transfer(ana, epsilon=0.5), bo.close):
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(LedgerPage, "append", killed)
            with pytest.raises(KeyboardInterrupt):
                move()
        assert (bo.limit.epsilon, ana.limit.epsilon, budget.spent.epsilon) == (1, 1, 2)
    ledger.verify()


def test_verify_finds_a_move_that_was_made_up(tmp_path):
    """Somebody who writes rows by hand, with right hashes, returns more
    than is left, or gives to nobody.
    """
    for forged in ("more", "nobody", "received"):
        ledger = Ledger(tmp_path / f"{forged}.sqlite")
        budget = ledger.budget("visits", epsilon=3)
        bo, ana = (budget.allocate(name=name, epsilon=1) for name in ("bo", "ana"))
        bo.transfer(ana, epsilon=0.25)
        ledger.verify()
        with book_of(budget).write() as page:
            gives = next(e for e in page.members(bo._opening.number) if "gives" in e.body)
            if forged == "nobody":
                page.append("charge", gives.body, account.now())
            else:
                about = {
                    "about": ana._opening.number,
                    "from": gives.number,
                    "loss": gives.body["loss"],
                }
                if forged == "more":
                    page.spent = page.spent - price("epsilon", 1)
                    about["loss"] = {"epsilon": "-1/1", "delta": "0/1", "rho": None}
                else:
                    about["within"] = gives.body["within"]
                page.append("transfer", about, account.now())
        if forged == "nobody":
            pay(ana, "0.01")
        with pytest.raises(errors.LedgerDamaged, match=r"gave|gives"):
            ledger.verify()


@pytest.mark.parametrize("kept", ["memory", "ledger"])
def test_an_allowance_in_rho_is_returned_to_its_spender_as_it_was_paid(tmp_path, clock, kept):
    """Its releases count ρ, and the budget and the spender's sum count ε and δ:
    no ρ is taken off either of them.
    """
    limit, ledger = {"epsilon": 5, "delta": 1e-4}, Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("b", **limit) if kept == "ledger" else dp.Budget(**limit)
    paid = price("epsilon", 2) + Loss(0, Fraction("1e-5"))
    for name, spent, left in (("untouched", False, Loss.none()), ("used", True, paid)):
        purse = budget.for_spender(name).allocate(name=name, nights=90, epsilon=2, delta=1e-5)
        assert (purse.terms, budget.spenders[name]) == ("rho", paid)
        if spent:
            pay(purse, "1/1000")
        purse.close()
        assert budget.spenders[name] == left
    if kept == "ledger":
        assert ledger.verify() == {"b": len(ledger.entries("b"))}
        ledger.change_caps("b", {"spender": {"rho": 0.01}}, by="Ada")
        bo = budget.for_spender("untouched")
        bo.charge(price("rho", "0.01"), WHO, "count()")
        with pytest.raises(errors.CapExceeded):
            bo.charge(price("rho", "0.001"), WHO, "count()")
