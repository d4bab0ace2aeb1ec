"""The data sets known by name: what each holds, and where it is published.

Every hash is of the content, uncompressed, so that any compression of a file will do. A record has an address
only where a file with exactly this content is known to be published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["REGISTRY", "DatasetInfo"]

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
TICK = "https://raw.githubusercontent.com/X-DataInitiative/tick-datasets/master"


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is read."""

    name: str
    """What to call it in `majorant.datasets.load`."""
    task: str
    """What is to be predicted, in a few words."""
    n_rows: int
    n_features: int
    """Columns of X as it is loaded: those of a training file and its test file together."""
    n_classes: int
    size: int
    """Bytes, uncompressed."""
    sha256: str
    """Of the content, uncompressed."""
    files: tuple[str, ...]
    """What the file may be called, before an ending such as `.bz2`."""
    origin: str
    """Where the data come from, in words."""
    address: str | None = None
    """Where a file with this content is published, if it is."""
    paper: bool = False
    """Whether the paper trains on it."""
    same_numbers: tuple[str, ...] = ()
    """Hashes of other files with the same numbers, spelt otherwise; as good as `sha256`."""
    last_feature: int | None = None
    """The last feature that occurs in the file, where that is not `n_features`."""

    @property
    def hashes(self) -> tuple[str, ...]:
        """All that the hash of the content may be."""
        return (self.sha256, *self.same_numbers)

    @property
    def most_bytes(self) -> int:
        """More than any spelling or compression of the content takes: what is larger is something else."""
        return 2 * self.size + 2**20


ADULT = "whether an income is above 50,000 dollars, from census answers"
WEB = "whether a web page belongs to a category, from its words"

_RECORDS = (
    DatasetInfo(
        name="a1a",
        task=ADULT,
        n_rows=1605,
        n_features=123,
        last_feature=119,
        n_classes=2,
        size=114_818,
        sha256="eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e",
        files=("a1a",),
        origin="LIBSVM data, from UCI Adult",
        address=f"{LIBSVM}/binary/a1a",
        paper=True,
    ),
    DatasetInfo(
        name="a1a.t",
        task=ADULT,
        n_rows=30956,
        n_features=123,
        n_classes=2,
        size=2_215_057,
        sha256="0212d0c4a3996fe6fb6a0ab54033d9f4fa4b60369b6e3bb141821d9ffc40c04d",
        files=("a1a.t",),
        origin="LIBSVM data, the test file of a1a",
        address=f"{LIBSVM}/binary/a1a.t",
    ),
    DatasetInfo(
        name="w8a",
        task=WEB,
        n_rows=49749,
        n_features=300,
        n_classes=2,
        size=3_478_238,
        sha256="6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2",
        files=("w8a",),
        origin="LIBSVM data, from Platt's experiments",
        address=f"{LIBSVM}/binary/w8a",
        paper=True,
    ),
    DatasetInfo(
        name="w8a.t",
        task=WEB,
        n_rows=14951,
        n_features=300,
        n_classes=2,
        size=1_045_870,
        sha256="618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde",
        files=("w8a.t",),
        origin="LIBSVM data, the test file of w8a",
        address=f"{LIBSVM}/binary/w8a.t",
    ),
    DatasetInfo(
        name="cina0",
        task="whether an income is above 50,000 dollars, from census answers and artificial distractors",
        n_rows=16033,
        n_features=132,
        n_classes=2,
        size=491_123,
        sha256="c79f03f480749a6cfd6df7b7af975ead2723568885e2b08984b2e04272bd790c",
        files=("cina0.mat",),
        origin=(
            "the training rows of CINA of the Causality Workbench "
            "(https://www.causality.inf.ethz.ch/data/CINA.html) as a MATLAB file with A and b"
        ),
        paper=True,
    ),
    DatasetInfo(
        name="a9a",
        task=ADULT,
        n_rows=32561,
        n_features=123,
        n_classes=2,
        size=2_329_875,
        sha256="f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
        files=("a9a",),
        origin="LIBSVM data, from UCI Adult",
        address=f"{LIBSVM}/binary/a9a",
    ),
    DatasetInfo(
        name="a9a.t",
        task=ADULT,
        n_rows=16281,
        n_features=123,
        last_feature=122,
        n_classes=2,
        size=1_164_628,
        sha256="1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
        files=("a9a.t",),
        origin="LIBSVM data, the test file of a9a",
        address=f"{LIBSVM}/binary/a9a.t",
    ),
    DatasetInfo(
        name="ijcnn1",
        task="whether an engine misfires, from its time series",
        n_rows=49990,
        n_features=22,
        n_classes=2,
        size=7_844_877,
        sha256="7fe291672c3fefe6a7e3c51529becd23f0e985ba05ffb8d53c9c648c1e91cc19",
        files=("ijcnn1.trn",),
        # LIBSVM's own ijcnn1.bz2 has as many rows, but other content.
        origin="the training file of ijcnn1 of the tick data sets, from the IJCNN 2001 challenge",
        address=f"{TICK}/binary/ijcnn1/ijcnn1.trn.bz2",
    ),
    DatasetInfo(
        name="mushrooms",
        task="whether a mushroom is poisonous, from its looks; separable",
        n_rows=8124,
        n_features=112,
        n_classes=2,
        size=879_712,
        sha256="f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538",
        files=("mushrooms",),
        origin="LIBSVM data, from UCI Mushroom",
        address=f"{LIBSVM}/binary/mushrooms",
    ),
    DatasetInfo(
        name="heart_scale",
        task="whether a heart is diseased, from 13 measurements",
        n_rows=270,
        n_features=13,
        n_classes=2,
        size=27_670,
        sha256="5defa0a4c4c5bdaf3f55ae3828310252e8565c13ee37ce279e0b86d82e7f4ce9",
        same_numbers=("86b479f1bfead9891393056bae38628cd669aa6675a2b98b019c44d55498805a",),
        files=("heart_scale",),
        origin="the example that comes with LIBSVM and LIBLINEAR, from Statlog Heart",
        address=f"{LIBSVM}/binary/heart_scale",
    ),
    DatasetInfo(
        name="rcv1_subset",
        task="whether a news story is about the economy or a company, from its words",
        n_rows=23765,
        n_features=47236,
        n_classes=2,
        size=27_854_196,
        sha256="de5e656aa32648ce88e1dc877e35a568067a54436a6fa0fc10a58f0a39854f8b",
        files=("rcv1_subset",),
        origin="five topic subsets of RCV1-v2 put together, +1 for CCAT or ECAT; not LIBSVM's rcv1.binary",
    ),
    DatasetInfo(
        name="news20",
        task="to which of 20 newsgroups a message went, from its words",
        n_rows=15935,
        n_features=62061,
        n_classes=20,
        size=9_003_251,
        sha256="1d6eb77c42e1c78e86f36af834268de933da3607f38e3703aef15f7a9f11e506",
        files=("news20",),
        origin="LIBSVM data, from 20 Newsgroups",
        address=f"{LIBSVM}/multiclass/news20.bz2",
    ),
    DatasetInfo(
        name="colon-cancer",
        task="whether a tissue is a tumour, from gene expression",
        n_rows=62,
        n_features=2000,
        n_classes=2,
        size=1_727_461,
        sha256="647eb57da9d5df273c8728a19033d80cf09bca70f4d35d1a2de5a281036bf35b",
        same_numbers=("2aba58433a381e18037787cbfbacf4db024c4ff7d84eaab4e020fb4cf99798cb",),
        files=("colon-cancer",),
        origin="LIBSVM data, from Alon et al. (1999)",
        address=f"{LIBSVM}/binary/colon-cancer.bz2",
    ),
    DatasetInfo(
        name="leukemia",
        task="which of two leukaemias a patient has, from gene expression",
        n_rows=38,
        n_features=7129,
        n_classes=2,
        size=3_903_972,
        sha256="95d1d089712937c6661d3beb218bcb02be5b0f7c17c13cbdbb19787b1fce87f8",
        same_numbers=("68fb745b5d34ee507a3f0a9530165a44801bb246f1aac48d542247935415714d",),
        files=("leukemia", "leu"),
        origin="LIBSVM data, from Golub et al. (1999)",
        address=f"{LIBSVM}/binary/leu.bz2",
    ),
)

REGISTRY: Mapping[str, DatasetInfo] = MappingProxyType({record.name: record for record in _RECORDS})
"""The data sets by name."""
