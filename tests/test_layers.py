"""The order of the layers, read from the syntax tree, and what importing the package loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "jupyter_ioscope"
NAME = "jupyter_ioscope"

# Layer of a module, by its first path component below the package. A layer may import from those
# listed for it, and from itself.
GROUND = {
    "arguments", "block_trace", "debugger", "errors", "optional", "paths", "process_stat",
    "registry", "units",
}  # fmt: skip
ALLOWED = {
    "ground": set(),
    "model": {"ground"},
    "capture": {"ground", "model"},
    "diagnosis": {"ground", "model"},
    "storage": {"ground", "model"},
    "trials": {"ground", "model", "capture", "diagnosis", "storage"},
    "benches": {"ground", "model", "capture", "diagnosis", "storage", "trials"},
    "views": {"ground", "model", "capture", "diagnosis", "storage", "trials", "benches"},
}
# Packages that only some layers may name, and then only where they are used.
ONLY_IN_VIEWS = {"plotly", "ipywidgets", "anywidget", "matplotlib"}
ONLY_IN_FUNCTIONS = {"torch", "datasets", "pynvml"}
NOT_AT_IMPORT_OUTSIDE_VIEWS = {"numpy", "PIL", "pandas"}


def files() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if "labextension" not in path.parts)


def module_of(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join([NAME, *parts])


def layer_of(module: str) -> str:
    """The layer of a module; the package root and single files beside it are doors."""
    parts = module.split(".")[1:]
    if not parts:
        return "door"
    if parts[0] in GROUND:
        return "ground"
    return parts[0] if parts[0] in ALLOWED else "door"


def imports(path: Path, *, everywhere: bool) -> list[str]:
    """Names of modules that a file imports: when it is imported, or anywhere in it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = ast.walk(tree) if everywhere else at_import(tree)
    package = module_of(path)
    if path.name != "__init__.py":
        package = package.rpartition(".")[0]
    found: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base]).rstrip(".")
            # `from package import name` may import the module `package.name`
            modules = [f"{base}.{alias.name}" for alias in node.names]
            known = [name for name in modules if name in MODULES]
            found += known if len(known) == len(modules) else [base, *known]
    return found


def at_import(tree: ast.AST) -> list[ast.AST]:
    """Nodes that run when the module is imported (not bodies of functions, not type-only)."""
    found: list[ast.AST] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        found += [node, *at_import(node)]
    return found


MODULES = {module_of(path): path for path in files()}


def test_imports_point_one_way() -> None:
    wrong = []
    for module, path in MODULES.items():
        layer = layer_of(module)
        if layer == "door":
            continue
        for name in imports(path, everywhere=True):
            if name.split(".")[0] != NAME or name == NAME:
                continue
            target = layer_of(name)
            if target != layer and target not in ALLOWED[layer]:
                wrong.append(f"{module} ({layer}) imports {name} ({target})")
    assert wrong == []


def test_nobody_inside_imports_names_from_the_package_root() -> None:
    wrong = [
        module
        for module, path in MODULES.items()
        if module != NAME and not module.endswith("._alias")
        for name in imports(path, everywhere=True)
        if name == NAME
    ]
    assert wrong == []


def test_heavy_packages_stay_where_they_are_allowed() -> None:
    wrong = []
    for module, path in MODULES.items():
        layer = layer_of(module)
        anywhere = {name.split(".")[0] for name in imports(path, everywhere=True)}
        loaded = {name.split(".")[0] for name in imports(path, everywhere=False)}
        if layer not in ("views", "door"):
            wrong += [f"{module} uses {name}" for name in sorted(anywhere & ONLY_IN_VIEWS)]
        wrong += [f"{module} loads {name}" for name in sorted(loaded & ONLY_IN_FUNCTIONS)]
        if layer != "views":
            heavy = loaded & (NOT_AT_IMPORT_OUTSIDE_VIEWS | ONLY_IN_VIEWS)
            wrong += [f"{module} loads {name}" for name in sorted(heavy)]
    assert wrong == []


def test_modules_import_each_other_without_a_cycle() -> None:
    graph = {
        module: sorted({name for name in imports(path, everywhere=False) if name in MODULES})
        for module, path in MODULES.items()
    }
    done: set[str] = set()
    cycles: list[str] = []

    def visit(module: str, trail: tuple[str, ...]) -> None:
        if module in trail:
            cycles.append(" -> ".join([*trail[trail.index(module) :], module]))
        elif module not in done:
            for name in graph[module]:
                # a package's __init__ that only its own children name is no cycle of theirs
                visit(name, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())
    assert cycles == []


def test_files_stay_small() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in files()
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert long == {}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("statement", ["import jupyter_ioscope", "import jupyter_ioscope._alias"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    if "_alias" in statement and not (ROOT / "_alias.py").exists():
        pytest.skip("the alias is made by packaging")
    heavy = ("torch", "datasets", "numpy", "plotly", "pandas", "matplotlib", "anywidget")
    code = f"import sys\n{statement}\nprint([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT.parent,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.strip() == "[]"
