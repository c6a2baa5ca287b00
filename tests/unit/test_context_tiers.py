"""What could stand beside a cursor: real indexes of small repositories in two languages."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support.repository import Buffers, around, indexed

from daemon.context.tiers import Tiers
from daemon.documents.document import Region, RegionKind
from daemon.nouns import Extra
from daemon.readers import Readers
from daemon.settings import Index
from daemon.surroundings import Piece

STORE = '''"""Orders on disk."""

from shop.models import Order


class Store:
    """Keeps orders."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_order(self, number: int, strict: bool = True) -> Order | None:
        """The order of that number."""
        path = self.folder + str(number)
        if strict and not path:
            raise KeyError(number)
        return None

    def save_order(self, order: Order) -> None:
        """Write an order."""
        print(order)

    def close(self) -> None:
        """Let go."""
'''
MODELS = '''"""What a shop sells."""

from dataclasses import dataclass


@dataclass
class Order:
    """One order."""

    number: int
    total_price: float


def discounted(order: Order, percent: float) -> float:
    """The price after a discount."""
    return order.total_price * (1 - percent / 100)
'''
REPORT = '''"""Reports."""

import json

from shop.models import Order, discounted
from shop.store import Store


class Report(Base):
    def lines(self, store: Store, numbers: list[int]) -> list[str]:
        found = []
        for number in numbers:
            order = store.
        return found
'''
FILES = {
    "shop/__init__.py": "",
    "shop/store.py": STORE,
    "shop/models.py": MODELS,
    "shop/report.py": REPORT,
    "shop/billing.py": """from shop.models import discounted
from shop.store import Store


class Bill(Base):
    def lines(self, store: Store, numbers: list[int]) -> list[str]:
        order = store.find_order(numbers[0], strict=False)
        return [str(discounted(order, 10.0))]
""",
    "shop/base.py": "class Base:\n    def title(self) -> str:\n        return ''\n",
    "far/away/queue.py": "class Queue:\n    def number(self): ...\n\n    def close(self): ...\n",
    "far/away/pool.py": "class Pool:\n    def number(self): ...\n\n    def close(self): ...\n",
    "shop/.env": "STORE_TOKEN=hunter2\n",
}


def happened(name: str, start: int, end: int, text: str, when: float, kind: RegionKind) -> Region:
    return Region(f"/somewhere/{name}", start, end, text, when, kind, "/somewhere", name)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path / "home"))


def of(pieces: tuple[Piece, ...], tier: str, path: str = "") -> str:
    return "\n".join(p.text for p in pieces if p.tier == tier and (not path or p.path == path))


def test_imported_definitions_and_how_others_use_them(tmp_path: Path) -> None:
    root, readers = indexed(tmp_path / "root", FILES)
    here = around(root, "shop/report.py", REPORT, "order = store.")
    found = Tiers(readers, Buffers()).candidates(here, REPORT, (5, 15))
    assert "def find_order(self, number: int, strict: bool = True) -> Order | None" in of(
        found, "P2", "shop/store.py"
    )
    assert "total_price: float" in of(found, "P2", "shop/models.py")
    assert "def discounted(order: Order, percent: float) -> float" in of(found, "P2", "shop/models.py")
    assert "store.find_order(numbers[0], strict=False)" in of(found, "P3", "shop/billing.py")
    sibling = [p for p in found if p.kind == "sibling"]
    assert [p.name for p in sibling] == ["Bill.lines"]
    assert all(p.source for p in found)
    assert found == Tiers(readers, Buffers()).candidates(here, REPORT, (5, 15))


def test_what_never_appears(tmp_path: Path) -> None:
    root, readers = indexed(tmp_path / "root", FILES)
    here = around(root, "shop/report.py", REPORT, "order = store.")
    history = [
        happened("shop/.env", 0, 1, "STORE_TOKEN=hunter2", 10.0, "edited"),
        happened("shop/report.py", 12, 13, "            order = store.", 11.0, "edited"),
    ]
    extras = [Extra(text="hunter2", filename="shop/.env", kind="clipboard"), Extra(text="plain snippet")]
    found = Tiers(readers, Buffers()).candidates(here, REPORT, (5, 15), history, extras)
    assert found
    for piece in found:
        assert "hunter2" not in piece.text
        assert "plain snippet" not in piece.text
        assert not piece.path.startswith("far/away"), "many files define it, nothing backs it"
        assert piece.path != "shop/report.py" or "order = store." not in piece.text
        assert "json" not in piece.text or piece.path == "shop/report.py"


def test_an_unsaved_buffer_replaces_what_is_stored(tmp_path: Path) -> None:
    root, readers = indexed(tmp_path / "root", FILES)
    here = around(root, "shop/report.py", REPORT, "order = store.")
    renamed = STORE.replace("find_order", "look_up_order")
    tiers = Tiers(readers, Buffers({(str(root), "shop/store.py"): renamed}))
    shown = of(tiers.candidates(here, REPORT, (5, 15)), "P2", "shop/store.py")
    assert "look_up_order" in shown
    assert "find_order" not in shown


def test_a_name_that_only_an_unsaved_buffer_has(tmp_path: Path) -> None:
    root, readers = indexed(tmp_path / "root", FILES)
    text = REPORT.replace("discounted", "with_taxes")
    here = around(root, "shop/report.py", text, "order = store.")
    models = MODELS.replace("discounted", "with_taxes")
    found = Tiers(readers, Buffers({(str(root), "shop/models.py"): models})).candidates(here, text, (5, 15))
    assert "def with_taxes(order: Order" in of(found, "P2", "shop/models.py")
    assert "def discounted" not in of(found, "P2")


def test_typescript(tmp_path: Path) -> None:
    cart = """import { Item, priceOf } from "./item";
import { formatMoney } from "./money";

export class Cart {
  private items: Item[] = [];

  total(currency: string): string {
    const sum = this.items.reduce((all, item) => all + priceOf(item), 0);
    return formatMoney(
  }
}
"""
    files = {
        "src/cart.ts": cart,
        "src/item.ts": """export interface Item {
  sku: string;
  cents: number;
  tags?: string[];
}

/** The price in cents. */
export function priceOf(item: Item): number {
  return item.cents;
}
""",
        "src/money.ts": """/** Cents as text. */
export function formatMoney(cents: number, currency: string, digits = 2): string {
  const whole = (cents / 100).toFixed(digits);
  if (!currency) {
    throw new Error("no currency");
  }
  const sign = cents < 0 ? "-" : "";
  const parts = [sign, whole, currency];
  const kept = parts.filter((part) => part.length > 0);
  const text = kept.join(" ");
  if (text.length > 20) {
    return text.slice(0, 20);
  }
  return text;
}
""",
        "src/invoice.ts": """import { formatMoney } from "./money";

export function footer(sum: number): string {
  return formatMoney(sum, "EUR", 0);
}
""",
    }
    root, readers = indexed(tmp_path / "root", files)
    here = around(root, "src/cart.ts", cart, "formatMoney(\n  }"[:12])
    found = Tiers(readers, Buffers()).candidates(here, cart, (3, 11))
    assert "formatMoney(cents: number, currency: string, digits = 2): string" in of(
        found, "P2", "src/money.ts"
    )
    assert "toFixed" not in of(found, "P2", "src/money.ts"), "only the head of a long function"
    assert "cents: number;" in of(found, "P2", "src/item.ts")
    assert 'formatMoney(sum, "EUR", 0)' in of(found, "P3", "src/invoice.ts")


def test_a_long_function_is_condensed_and_the_window_is_not_repeated(tmp_path: Path) -> None:
    body = "".join(f"    step_{n} = prepare({n})\n" for n in range(80))
    text = (
        "def work(first: int) -> int:\n"
        '    """Does all the work."""\n'
        "    for each in range(first):\n"
        "        total = first\n" + body + "    total += first\n    return tot\n"
    )
    root, readers = indexed(tmp_path / "root", {"a.py": text})
    here = around(root, "a.py", text, "return tot")
    found = Tiers(readers, Buffers()).candidates(here, text, (70, 90))
    (piece,) = [p for p in found if p.kind == "enclosing"]
    assert piece.text.startswith(
        'def work(first: int) -> int:\n    """Does all the work."""\n    for each in'
    )
    assert "total = first" in piece.text
    assert "step_10 " not in piece.text
    assert piece.text.count("\n") < 20
    window = set(text.split("\n")[70:90])
    assert not any(line in window for p in found for line in p.text.split("\n") if len(line) > 20)


def test_the_past_and_what_a_client_sends(tmp_path: Path) -> None:
    root, readers = indexed(tmp_path / "root", FILES)
    here = around(root, "shop/report.py", REPORT, "order = store.")
    history = [
        happened("shop/models.py", 3, 5, "total_price: float\nvat: float", 100.0, "edited"),
        happened("shop/billing.py", 5, 6, "store.find_order(1)", 700.0, "accepted"),
        happened("shop/store.py", 5, 6, "class Store:", 400.0, "visited"),
    ]
    extras = [
        Extra(text="error: no such method", filename="shop/report.py", kind="diagnostic"),
        Extra(text="copied()", kind="clipboard"),
    ]
    found = Tiers(readers, Buffers()).candidates(here, REPORT, (5, 15), history, extras)
    past = {(p.kind, p.text): p for p in found if p.tier == "P4"}
    assert {kind for kind, _ in past} == {"recent", "accepted", "diagnostic", "clipboard"}
    assert past["accepted", "store.find_order(1)"].recency == 1.0
    assert past["recent", "total_price: float\nvat: float"].recency == pytest.approx(0.25)
    assert next(p for p in found if p.tier == "P3" and p.path == "shop/billing.py").recency == 1.0


def test_places_passed_through_count_as_far_as_they_have_to_do_with_the_cursor(tmp_path: Path) -> None:
    here = around(tmp_path, "a.py", "def work(order):\n    total = order.", "order.")
    history = [
        happened("b.py", 0, 1, "def price(order, total): ...", 1.0, "visited"),
        happened("c.py", 0, 1, "def other(): ...", 1.0, "visited"),
        happened("d.py", 0, 1, "def another(): ...", 1.0, "edited"),
    ]
    found = Tiers(Readers(Index()), Buffers()).candidates(here, "def work(order):\n", (0, 2), history)
    near, far, edited = (next(p for p in found if p.path == path) for path in ("b.py", "c.py", "d.py"))
    assert edited.score > near.score > far.score


def test_the_index_says_what_a_part_of_a_file_imports(tmp_path: Path) -> None:
    root, readers = indexed(tmp_path / "root", FILES)
    part = REPORT[REPORT.index("class ") :]
    here = around(root, "shop/report.py", REPORT, "order = store.")
    assert here.imports
    unknown = msgspec.structs.replace(here, imports=(), names=())
    found = Tiers(readers, Buffers()).candidates(unknown, part, (0, 5))
    known = Tiers(readers, Buffers()).candidates(msgspec.structs.replace(here, names=()), part, (0, 5))
    shown = {(p.kind, p.path, p.name) for p in found if p.tier == "P2" and p.path != here.path}
    assert shown == {(p.kind, p.path, p.name) for p in known if p.tier == "P2" and p.path != here.path}
    assert ("definition", "shop/models.py", "discounted") in shown


def test_without_an_index_the_own_file_and_the_past_remain(tmp_path: Path) -> None:
    text = "def work(value):\n" + "    value += 1\n" * 50 + "    return value\n"
    here = around(tmp_path, "a.py", text, "    return")
    history = [happened("b.py", 0, 1, "other = 1", 1.0, "edited")]
    found = Tiers(Readers(Index()), Buffers()).candidates(here, text, (40, 52), history)
    assert {p.kind for p in found} >= {"enclosing", "recent"}
