"""Model files without pickle, and models in the formats of LIBLINEAR and ONNX."""

from majorant.persistence.liblinear import from_liblinear, to_liblinear
from majorant.persistence.onnx import from_onnx, register_onnx_converters, to_onnx
from majorant.persistence.parameters import Unavailable
from majorant.persistence.provenance import Provenance
from majorant.persistence.store import kind_of, load_any, load_model, load_provenance, save_model

__all__ = [
    "Provenance",
    "Unavailable",
    "from_liblinear",
    "from_onnx",
    "kind_of",
    "load_any",
    "load_model",
    "load_provenance",
    "register_onnx_converters",
    "save_model",
    "to_liblinear",
    "to_onnx",
]
