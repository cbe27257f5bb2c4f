"""The command line: parses, calls, prints. Results go to standard output, everything else to standard error."""

import sys

import typer

from .._start import prepare_process
from ..data.names import visible
from ..training.errors import record_ending
from .commands import app
from .exit_codes import describe_end, show_warnings, terminate_politely


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code: 0 success, 1 the work failed, 2 bad arguments or input."""
    prepare_process()
    command = typer.main.get_command(app)
    try:
        with show_warnings(), terminate_politely():
            code = command.main(args=arguments, prog_name="sohot", standalone_mode=False)
    except BaseException as error:
        end = describe_end(error)
        if end is None:
            raise
        code, sentence = end
        if not record_ending(code, sentence, error) and sentence:
            print(visible(f"sohot: {sentence}"), file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)
