"""One function for all data: names of sets, stand-ins, and files by their ending."""

import numpy as np
import pytest
from scipy import sparse

from csdpp.datasets import REGISTRY, STAND_INS, load, load_named, make_stand_in
from csdpp.errors import InvalidParameter, MissingData

XML = '<labels><label name="a"/></labels>'
ARFF = "@relation 'toy: -C {}'\n@attribute x real\n@attribute a {{0,1}}\n@data\n2.5,1\n3.5,0\n"


@pytest.fixture
def no_sets(tmp_path, monkeypatch):
    """Neither CSDPP_DATA nor a cache."""
    monkeypatch.delenv("CSDPP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    return tmp_path


def test_names_of_sets_are_found_below_the_root_whatever_their_case(data_dir, monkeypatch):
    for name in ("CAL500", "cal500"):
        assert repr(load(name, root=data_dir)) == repr(load_named("cal500", data_dir))
    monkeypatch.setenv("CSDPP_DATA", str(data_dir))
    assert load("emotions").statistics()[:3] == (593, 72, 6)


def test_a_name_wins_over_a_file_and_a_dot_makes_it_a_file(no_sets, monkeypatch):
    monkeypatch.chdir(no_sets)
    (no_sets / "scene").write_text("no set")
    with pytest.raises(MissingData, match="expected 'scene'"):
        load("scene")
    with pytest.raises(InvalidParameter, match="format must be given where the ending does not tell, got 'scene'"):
        load("./scene")


def test_arff_is_mulans_where_an_xml_is_there_else_mekas(no_sets):
    file = no_sets / "toy.arff"
    file.write_text(ARFF.format(1).replace("x real", "x {0,1}").replace("2.5", "1").replace("3.5", "0"))
    assert load(file).label_names == ("x",)
    file.with_suffix(".xml").write_text(XML)
    assert load(file).label_names == ("a",)
    assert load(str(file), format="meka").label_names == ("x",)
    (no_sets / "other.xml").write_text(XML.replace('"a"', '"x"'))
    assert load(file, xml=no_sets / "other.xml").label_names == ("x",)
    assert load([file, file]).X.shape == (4, 1)


def test_what_is_no_name_and_no_file_is_refused_with_what_there_is(no_sets):
    with pytest.raises(MissingData, match=r"load: expected a file, or one of cal500, .*eurlex-like, got 'flowers'"):
        load("flowers")
    with pytest.raises(MissingData, match=r"got '.*gone.arff'"):
        load([no_sets / "gone.arff"])
    with pytest.raises(InvalidParameter, match="path must name one file or more"):
        load([])
    with pytest.raises(InvalidParameter, match=r"format must be one of mulan, .*, got 'excel'"):
        load(__file__, format="excel")


@pytest.mark.parametrize("name", STAND_INS)
def test_stand_ins_have_the_sizes_and_the_cardinality_of_their_models_and_another_name(name):
    n = 3000
    ds, model = load(name, n=n), STAND_INS[name].model
    assert ds.name == name
    assert name not in REGISTRY
    assert ds.X.shape == (n, model.d)
    assert ds.Y.shape == (n, model.K)
    assert ds.statistics().cardinality == pytest.approx(model.cardinality, rel=0.05)
    assert sparse.issparse(ds.X) == (name == "eurlex-like")


def test_a_stand_in_has_all_rows_unless_told_and_obeys_its_seed():
    assert load("Mediamill-Like").X.shape == (43907, 120)
    a, b, c = (load("mediamill-like", n=5, random_state=seed).X for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
    with pytest.raises(InvalidParameter, match=r"make_stand_in: name must be .*, got 'mediamill'"):
        make_stand_in("mediamill")
