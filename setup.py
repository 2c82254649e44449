"""The packages of the wheel: those of the tree, and two folders that pyproject.toml maps into one of them."""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["runtime", "runtime.*", "ondatra_web", "ondatra_web.*"]),
        "ondatra_web.templates",
        "ondatra_web.static",
    ]
)
