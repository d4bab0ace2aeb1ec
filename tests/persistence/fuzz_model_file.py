"""A harness for atheris: whatever the bytes, a ModelFileError or a model that predicts.

python tests/fuzz_model_file.py -runs=15000 CORPUS
"""

import sys

import atheris
import numpy as np

with atheris.instrument_imports(include=["majorant.persistence"]):
    from majorant.errors import ModelFileError
    from majorant.persistence import strict
    from majorant.persistence.document import checksum, model_of


def one_input(data):
    try:
        node = strict.parse(data)
    except ModelFileError:
        return
    if isinstance(node, dict):
        node["sha256"] = checksum(node)  # or nothing would get past it
    try:
        model, _ = model_of(node)
    except ModelFileError:
        return
    if model.n_features_in_ <= 1000:
        with np.errstate(all="ignore"):
            model.predict(np.ones((1, model.n_features_in_)))


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
