"""Puts the program into the wheel where `cargo xtask dist` builds it, else the wheel is of Python alone."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Program(BuildHookInterface):
    def initialize(self, version, build_data):
        binary = os.environ.get("COSCHED_WHEEL_BINARY")
        if binary:
            build_data["shared_scripts"][binary] = "cosched"
            build_data["tag"] = os.environ["COSCHED_WHEEL_TAG"]
            build_data["pure_python"] = False
