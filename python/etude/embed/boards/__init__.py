"""Boards that QEMU has, on which an embedded program can be tried: what to compile, how, and where its memory is."""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple


class Board(NamedTuple):
    """A machine, and its compiler."""

    name: str
    processor: str
    start: str  #: the file of this folder that starts it
    compiler: str
    flags: str  #: for the processor
    emulator: str  #: command without the image's name
    code: str = ""  #: origin and length of the memory for code
    data: str = ""

    def files(self) -> dict[str, str]:
        """The text of each file that the board adds to a folder."""
        folder = resources.files(__package__)
        made = {"board.c": folder.joinpath(self.start).read_text("utf-8"), "board.h": folder.joinpath("board.h").read_text("utf-8")}
        sections = "-Os -std=gnu99 -ffunction-sections -fdata-sections"
        if self.code:
            script = folder.joinpath("link.ld").read_text("utf-8")
            made["link.ld"] = script.replace("@CODE@", self.code).replace("@DATA@", self.data)
            flags = f"{self.flags} {sections} -nostartfiles -Wl,--gc-sections -T link.ld"
        else:
            flags = sections + " -Wl,--gc-sections"
        made["flags.txt"] = flags + "\n"
        return made

    def commands(self) -> list[str]:
        """How to build and run it, in the folder."""
        build = f"{self.compiler} @flags.txt *.c -lm -o image.elf"
        return [build, f"{self.emulator} image.elf" if self.emulator else "./image.elf"]


_SEMIHOSTING = "-nographic -monitor none -serial none -semihosting-config enable=on,target=native -kernel"
_ARM, _RISCV = "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"

BOARDS = {
    board.name: board
    for board in (
        Board("host", "this machine", "host.c", "cc", "", ""),
        Board(
            "mps2-an386", "Arm Cortex-M4F", "cortex_m.c", _ARM, "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16",
            f"qemu-system-arm -M mps2-an386 {_SEMIHOSTING}", "0x00000000, LENGTH = 4M", "0x20000000, LENGTH = 4M",
        ),
        Board(
            "mps2-an505", "Arm Cortex-M33", "cortex_m.c", _ARM, "-mcpu=cortex-m33 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16",
            f"qemu-system-arm -M mps2-an505 {_SEMIHOSTING}", "0x10000000, LENGTH = 4M", "0x38000000, LENGTH = 4M",
        ),
        Board(
            "mps3-an547", "Arm Cortex-M55 with Helium", "cortex_m.c", _ARM, "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard -fno-if-conversion2",  # GNU as 2.40 takes vcvt in an IT block for vcvtn
            f"qemu-system-arm -M mps3-an547 {_SEMIHOSTING}", "0x00000000, LENGTH = 512K", "0x20000000, LENGTH = 512K",
        ),
        Board(
            "riscv32-virt", "RISC-V 32 (RV32IMAC)", "riscv.c", _RISCV, "-march=rv32imac -mabi=ilp32 -mcmodel=medany --specs=picolibc.specs",
            f"qemu-system-riscv32 -M virt -bios none {_SEMIHOSTING}", "0x80000000, LENGTH = 4M", "0x80400000, LENGTH = 4M",
        ),
    )
}  # fmt: skip
