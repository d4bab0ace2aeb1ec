"""What `benchopt test` leaves out, and why."""

import pytest


def check_test_dataset_get_data(benchmark, dataset_class):
    """Data sets of files need the files."""
    if dataset_class.name == "files":
        missing = dataset_class.get_instance().why_not()
        if missing is not None:
            pytest.skip(missing)
