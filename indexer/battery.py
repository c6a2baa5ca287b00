"""Whether the machine runs on its battery."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import psutil

SUPPLIES = Path("/sys/class/power_supply")
_MAINS = ("Mains", "USB")


def on_battery() -> bool:
    """False where that is not known."""
    if sys.platform != "linux":
        with contextlib.suppress(Exception):  # psutil raises many kinds on odd machines
            battery = psutil.sensors_battery()
            return battery is not None and battery.power_plugged is False
        return False
    return discharging(SUPPLIES)


def discharging(supplies: Path) -> bool:
    """By Linux' folder of power supplies. psutil takes a mouse's battery for the machine's: its `scope` is
    `Device`. A charger that is plugged in counts, strong enough or not."""
    found = False
    try:
        for supply in supplies.iterdir():
            kind = _said(supply / "type")
            if kind in _MAINS and _said(supply / "online") == "1":
                return False
            if kind == "Battery" and _said(supply / "scope") != "Device":
                found = found or _said(supply / "status") == "Discharging"
    except OSError:
        return False
    return found


def _said(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
