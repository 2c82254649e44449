"""The packages of the wheel: those of the tree, and three folders that pyproject.toml maps into one of them."""

from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py


class BuildPy(build_py):
    """README.md, which lies at the top of the tree, is one of the docs."""

    def run(self) -> None:
        super().run()
        self.copy_file("README.md", str(Path(self.build_lib, "ondatra_web", "docs", "README.md")))


setup(
    packages=[
        *find_packages(include=["runtime", "runtime.*", "ondatra_web", "ondatra_web.*"]),
        "ondatra_web.templates",
        "ondatra_web.static",
        "ondatra_web.docs",
    ],
    cmdclass={"build_py": BuildPy},
)
