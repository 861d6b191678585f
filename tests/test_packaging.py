"""What is installed: two import names, the built front end, nothing of the building machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[1]
FRONT_END = REPOSITORY / "labextension"
EXTENSION = "share/jupyter/labextensions/jupyter-ioscope"
FRONT_END_LIMIT_BYTES = 250_000  # of all scripts together; plotly is not among them
WIDGET_LIMIT_BYTES = 250_000
HEAVY = ("torch", "datasets", "numpy", "plotly", "ipywidgets", "anywidget", "IPython", "pynvml")
# Names that look like addresses; nothing asks for them.
NAMES = {
    "http://www.w3.org/2000/svg",
    "https://www.speedscope.app/file-format-schema.json",  # what speedscope's files begin with
}


def run(*command: str, cwd: Path) -> str:
    binaries = Path(sys.executable).parent  # where the environment has jlpm and jupyter-builder
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def in_fresh_python(code: str) -> str:
    # away from the repository: only what is installed can be imported
    return run(sys.executable, "-I", "-c", code, cwd=Path(sys.prefix)).strip()


def copy_of_sources(target: Path) -> Path:
    """The files that git knows, with the installed JavaScript packages linked beside them."""
    listed = run("git", "ls-files", "-z", cwd=REPOSITORY).split("\0")
    for name in filter(None, listed):
        if (REPOSITORY / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, target / name)
    (target / "labextension" / "node_modules").symlink_to(FRONT_END / "node_modules")
    (target / "labextension" / ".yarn").mkdir()
    state = Path(".yarn") / "install-state.gz"
    shutil.copy2(FRONT_END / state, target / "labextension" / state)
    return target


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """A wheel built from the sources as they are now, the front end included."""
    if not (FRONT_END / "node_modules").is_dir():
        pytest.skip("the front end's packages are not installed: cd labextension && jlpm")
    sources = copy_of_sources(tmp_path_factory.mktemp("sources"))
    run("jlpm", "build:prod", cwd=sources / "labextension")
    output = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(output))
    run(*build, cwd=sources)
    (built,) = output.glob("*.whl")
    with zipfile.ZipFile(built) as opened:
        yield opened
    shutil.rmtree(sources)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


@pytest.mark.beside
@pytest.mark.timeout(400)
class TestWheel:
    def test_holds_the_package_the_alias_and_the_front_end(self, wheel: zipfile.ZipFile) -> None:
        names = set(wheel.namelist())
        assert {
            "ioscope.py",
            *(f"jupyter_ioscope/static/{n}.js" for n in ("widget", "page")),
        } <= names
        extension = [name for name in names if f".data/data/{EXTENSION}/" in name]
        ends = ("/package.json", "/install.json", "/static/style.js", "/plugin.json")
        for end in ends:
            assert any(name.endswith(end) for name in extension), end
        assert any("remoteEntry" in name for name in extension)
        assert any(name.endswith("/licenses/LICENSE") for name in names)

    def test_holds_nothing_else(self, wheel: zipfile.ZipFile) -> None:
        tops = {name.split("/")[0] for name in wheel.namelist()}
        assert {top for top in tops if not top.startswith("jupyter_ioscope-")} == {
            "ioscope.py",
            "jupyter_ioscope",
        }
        unwanted = re.compile(r"node_modules|\.map$|/test|\.tsx?$|__pycache__|/labextension/src")
        assert [name for name in wheel.namelist() if unwanted.search(name)] == []

    def test_names_no_path_of_this_machine(self, wheel: zipfile.ZipFile) -> None:
        places = {str(REPOSITORY), str(Path.home()), sys.prefix, "pytest-of-"}
        found = [
            (name, place)
            for name in wheel.namelist()
            for place in places
            if place.encode() in wheel.read(name)
        ]
        assert found == []

    def test_front_end_fetches_nothing(self, wheel: zipfile.ZipFile) -> None:
        scripts = [name for name in wheel.namelist() if name.endswith(".js")]
        for name in scripts:
            text = wheel.read(name).decode()
            urls = set(re.findall(r"""["'`](https?://[^"'`]+)""", text)) - NAMES
            assert urls == set(), name
            assert not re.search(r"(?m)^//# sourceMappingURL", text), name

    @pytest.mark.parametrize("name", ["widget.js", "page.js"])
    def test_scripts_of_reports_are_small(self, wheel: zipfile.ZipFile, name: str) -> None:
        size = wheel.getinfo(f"jupyter_ioscope/static/{name}").file_size
        assert 10_000 < size <= WIDGET_LIMIT_BYTES

    def test_the_whole_extension_is_small(self, wheel: zipfile.ZipFile) -> None:
        sizes = [
            entry.file_size
            for entry in wheel.infolist()
            if "/labextensions/" in entry.filename and entry.filename.endswith((".js", ".css"))
        ]
        assert 10_000 < sum(sizes) <= FRONT_END_LIMIT_BYTES

    def test_installs_little_by_itself(self, metadata: Message) -> None:
        required = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
        core = {one.name for one in required if "extra" not in str(one.marker or "")}
        assert core.isdisjoint({"torch", "datasets", "nvidia-ml-py", "jupyterlab", "matplotlib"})
        assert {"ipywidgets", "plotly", "py-spy"} <= core

    def test_offers_the_extras(self, metadata: Message) -> None:
        extras = set(metadata.get_all("Provides-Extra", []))
        assert extras == {"torch", "hf", "gpu", "bench", "demo", "test"}
        assert metadata["Requires-Python"] == ">=3.10"

    def test_brings_the_command(self, wheel: zipfile.ZipFile) -> None:
        (name,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
        assert "ioscope = jupyter_ioscope.cli:main" in wheel.read(name).decode()

    def test_every_requirement_is_pinned_for_development(self, metadata: Message) -> None:
        lines = (REPOSITORY / "constraints-dev.txt").read_text().splitlines()
        pinned = {canonicalize_name(line.split("==")[0]) for line in lines if "==" in line}
        required = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
        names = {canonicalize_name(one.name) for one in required}
        assert names - pinned == set()


class TestVersions:
    def test_are_equal_everywhere(self) -> None:
        import jupyter_ioscope

        package = json.loads((FRONT_END / "package.json").read_text())
        viewer = re.search(r"VERSION = '([^']+)'", (FRONT_END / "src" / "version.ts").read_text())
        assert viewer is not None
        assert package["version"] == viewer[1] == jupyter_ioscope.__version__

    def test_report_format_is_the_same_on_both_sides(self) -> None:
        from jupyter_ioscope.views.shapes import FORMAT

        reader = (FRONT_END / "src" / "read.ts").read_text()
        assert f"export const FORMAT = {FORMAT};" in reader


class TestLocks:
    @pytest.mark.parametrize("name", ["labextension/yarn.lock", "constraints-dev.txt"])
    def test_name_versions_and_no_place_to_get_them_from(self, name: str) -> None:
        text = (REPOSITORY / name).read_text()
        assert "://" not in text
        assert " @ " not in text

    def test_torch_is_pinned_without_a_build_of_its_own(self) -> None:
        lines = (REPOSITORY / "constraints-dev.txt").read_text().splitlines()
        assert [line for line in lines if line.startswith("torch==")] == ["torch==2.13.0"]


@pytest.mark.timeout(240)
class TestAlias:
    def test_is_the_same_package_under_its_short_name(self) -> None:
        code = (
            "import ioscope, jupyter_ioscope as long\n"
            "names = [*long.__all__, 'load_ipython_extension', 'unload_ipython_extension']\n"
            "assert all(getattr(ioscope, name) is getattr(long, name) for name in names)\n"
            "from ioscope import *\n"
            "print(profile is long.profile, set(long.__all__) <= set(dir(ioscope)))"
        )
        assert in_fresh_python(code) == "True True"

    def test_loads_nothing_heavy(self) -> None:
        code = f"import ioscope, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
        assert in_fresh_python(code) == "[]"

    def test_has_no_names_of_its_own(self) -> None:
        code = (
            "import ioscope\n"
            "try:\n    ioscope.absent\n"
            "except AttributeError as error:\n    print(error)"
        )
        assert "absent" in in_fresh_python(code)
