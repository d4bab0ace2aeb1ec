"""Missing values and categories of tables: what scikit-learn's transformers make of them, in every format."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from majorant.datasets import Preprocessing, open_source, read, write_libsvm
from majorant.errors import DataFileError, MajorantError

ENDINGS = ["csv", "tsv", "parquet", "feather"]


def frame(seed=0, n=60):
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(rng.standard_normal((n, 2)), columns=["height", "weight"])
    made.insert(1, "ward", rng.choice(["east", "north", "w,e"], n))
    made["smoker"] = rng.random(n) < 0.5
    made["stage"] = rng.choice([1.0, 2.0, 3.0], n)
    made.loc[rng.random(n) < 0.2, "height"] = np.nan
    made.loc[rng.random(n) < 0.2, "ward"] = None
    made["y"] = rng.integers(0, 2, n)
    return made


def write(table, path):
    if path.suffix in (".csv", ".tsv"):
        table.to_csv(path, index=False, sep="," if path.suffix == ".csv" else "\t")
    elif path.suffix == ".parquet":
        table.to_parquet(path, row_group_size=7)
    else:
        table.to_feather(path)
    return path


def expected(train, other, impute):
    strategy = (
        {"strategy": impute} if isinstance(impute, str) else {"strategy": "constant", "fill_value": impute}
    )
    numbers, categories = ["height", "weight", "smoker"], ["ward", "stage"]
    transformer = ColumnTransformer(
        [
            ("numbers", SimpleImputer(**strategy), numbers),
            ("categories", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), categories),
        ]
    ).set_output(transform="pandas")
    tables = [
        each.assign(smoker=each["smoker"].astype(float), ward=each["ward"].fillna(""))
        for each in (train, other)
    ]
    transformer.fit(tables[0])
    return transformer.transform(tables[1])


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("impute", ["median", "mean", -1.5])
def test_features_are_those_of_scikit_learn(tmp_path, ending, impute):
    train, other = frame(0), frame(1)
    other.loc[:3, "ward"] = "mars"
    paths = [write(table, tmp_path / f"{k}.{ending}") for k, table in enumerate((train, other))]
    learned = Preprocessing(impute=impute, one_hot=["ward", "stage"])
    first = read(paths[0], preprocessing=learned)
    with pytest.warns(UserWarning, match="4 rows have a category of 'ward' .* not trained with \\('mars'\\)"):
        second = read(paths[1], preprocessing=first.preprocessing)
    names = ("height", "ward=", "ward=east", "ward=north", "ward=w,e", "weight", "smoker")
    assert first.feature_names == second.feature_names == (*names, "stage=1", "stage=2", "stage=3")
    columns = [
        *("numbers__height", "categories__ward_", "categories__ward_east", "categories__ward_north"),
        *("categories__ward_w,e", "numbers__weight", "numbers__smoker"),
        *("categories__stage_1.0", "categories__stage_2.0", "categories__stage_3.0"),
    ]
    for data, table in ((first, train), (second, other)):
        assert np.allclose(data.X, expected(train, table, impute)[columns], rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("impute", ["median", "mean", 0])
def test_blocks_of_a_source_have_the_same_bits(tmp_path, impute):
    train, other = (write(frame(k), tmp_path / f"{k}.parquet") for k in range(2))
    learned = Preprocessing(impute=impute, one_hot="ward")
    whole = read(train, preprocessing=learned)
    # One column at a time is all that fits.
    source = open_source(train, preprocessing=learned, block_bytes=100, memory="1KB")
    assert source.n_blocks == 9
    assert source.preprocessing == whole.preprocessing
    assert source.feature_names == whole.feature_names
    blocks = np.concatenate([source.load(i).X for i in range(source.n_blocks)])
    assert blocks.tobytes() == whole.X.tobytes()
    again = open_source(other, preprocessing=source.preprocessing)
    assert again.load(0).X.tobytes() == read(other, preprocessing=whole.preprocessing).X.tobytes()
    text = open_source(write(frame(0), tmp_path / "0.csv"), preprocessing=learned)
    assert np.allclose(text.load(0).X, whole.X)
    both = open_source([train, other], preprocessing=learned)
    assert both.preprocessing == whole.preprocessing
    assert both.n_features == len(whole.feature_names)


@pytest.mark.parametrize("ending", ENDINGS)
def test_some_features_need_only_their_columns(tmp_path, ending):
    data = read(write(frame(), tmp_path / f"t.{ending}"), preprocessing=Preprocessing("median", ["ward"]))
    wanted = ("weight", "ward=north", "height")
    path = write(frame()[["ward", "y", "weight", "height"]], tmp_path / f"few.{ending}")
    few = read(path, columns=wanted, preprocessing=data.preprocessing)
    places = [data.feature_names.index(name) for name in wanted]
    assert np.array_equal(few.X, data.X[:, places])


def test_an_integer_is_the_same_category_with_and_without_a_point(tmp_path):
    (tmp_path / "a.csv").write_text("stage,y\n1,0\n2,1\n03,0\n")
    (tmp_path / "b.csv").write_text("stage,y\n2.0,0\n,1\n1.00,0\n")
    data = read(tmp_path / "a.csv", preprocessing=Preprocessing(one_hot=["stage"]))
    assert data.feature_names == ("stage=03", "stage=1", "stage=2")
    with pytest.warns(UserWarning, match="1 row has a category of 'stage' .*\\(''\\)"):
        other = read(tmp_path / "b.csv", preprocessing=data.preprocessing)
    assert other.X.tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("text", "preprocessing", "message"),
    [
        ("a,b,y\n1,,0\n", {"one_hot": ["a"]}, r"t\.csv:2:3: a missing value.*\(--impute median\)"),
        ("a,b,y\n1,x,0\n", {"impute": "mean"}, r"t\.csv:2:3: 'x' in the column 'b' is not.*\(--one-hot b\)"),
        ("a,b,y\n1,inf,0\n", {"impute": "mean"}, r"t\.csv:2:3: 'inf' in the column 'b' is not a number"),
        ("a,b,y\n1,1e999,0\n", {"impute": "mean"}, r"t\.csv:2:3: '1e999' in the column 'b' is too large"),
        ("a,b,y\n1,,0\n2,NA,1\n", {"impute": "median"}, "'b' has no value at all.*--drop b"),
        ("a,b,y\n1,2,0\n", {"one_hot": ["c"]}, "no column 'c' of features; the columns are 'a', 'b'"),
        ("a,b,y\n1,2,0\n", {"one_hot": ["y"]}, "no column 'y' of features"),
        ("a,a=1,y\n1,2,0\n", {"one_hot": ["a"]}, "two features would have the name 'a=1'"),
        (
            "a,y\n" + "".join(f"id{k},1\n" for k in range(1001)), {"one_hot": ["a"]},
            "'a' has more than 1,000 different values.*--drop a",
        ),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(tmp_path, text, preprocessing, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataFileError, match=message):
        read(tmp_path / "t.csv", preprocessing=Preprocessing(**preprocessing))


def test_a_number_is_filled_in_where_a_column_has_none(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n1,,0\n?,n/a,1\n")
    data = read(tmp_path / "t.csv", preprocessing=Preprocessing(impute=7))
    assert data.X.tolist() == [[1, 7], [7, 7]]


def test_what_is_no_table_is_refused(tmp_path):
    write_libsvm(tmp_path / "t.svm", [[1.0], [2.0]], [0, 1])
    np.savez(tmp_path / "t.npz", X=[[1.0], [2.0]], y=[0, 1])
    np.save(tmp_path / "X.npy", [[1.0], [2.0]])
    np.save(tmp_path / "y.npy", [0, 1])
    for name in ("t.svm", "t.npz", "X.npy"):
        with pytest.raises(DataFileError, match=r"preprocessing= \(--impute, --one-hot\) is for tables"):
            open_source(tmp_path / name, preprocessing=Preprocessing("median"))


@pytest.mark.parametrize("impute", ["mode", float("nan"), True, "1"])
def test_an_unknown_way_to_impute_is_refused(impute):
    with pytest.raises(MajorantError, match="is none of 'median', 'mean' and a finite number"):
        Preprocessing(impute)
