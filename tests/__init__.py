"""The tests mirror `src/majorant`; laws, the paper, browsers and clusters have folders of their own."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
"""The root of the repository."""
