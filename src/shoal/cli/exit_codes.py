"""Turns every failure into a line on stderr and an exit code; no other module does.

Guarantees: wrong input or usage is one line and code 2; any other failure is one line and code 1, with the traceback
when asked for; Ctrl-C is 130; a reader that closed the pipe is no news, only code 1.

Rejected: letting typer print its own boxes for errors. Scripts and people look for one line.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from contextvars import ContextVar

import typer

from shoal.cli.extras import missing_extra
from shoal.units.errors import UserError, excerpt, one_line

_HINT = " (add --debug to see where)"
DONE, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130
# typer keeps the root of its usage errors private; any of the public ones leads there.
# A path that the user named and that cannot be used as it is.
_PATH_ERRORS = {
    errno.EACCES,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


_ending: ContextVar[list[int] | None] = ContextVar("ending", default=None)


def end_with(code: int) -> None:
    """The command goes on, and ends with this code if nothing else fails."""
    codes = _ending.get()
    if codes is not None:
        codes.append(code)


def exit_code(command: Callable[[], object], debug: bool = False) -> int:
    """Run the command; an integer it returns is its own code."""
    codes: list[int] = []
    token = _ending.set(codes)
    try:
        returned = command()
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more when it ends; that flush must find an open file.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", INTERRUPTED, debug=False)
    except UserError as error:
        return _complain(str(error), WRONG_INPUT, debug)
    except _UsageError as error:
        return _complain(_usage(error), WRONG_INPUT, debug)
    except OSError as error:
        return _complain(*_os_error(error, debug), debug)
    except ModuleNotFoundError as error:
        words = missing_extra(error)
        return _complain(words, WRONG_INPUT, debug) if words else _complain(_fault(error, debug), FAILED, debug)
    except Exception as error:  # noqa: BLE001 - the door is where every failure becomes a line
        return _complain(_fault(error, debug), FAILED, debug)
    finally:
        _ending.reset(token)
    return returned if isinstance(returned, int) and returned else max(codes, default=DONE)


def _fault(error: Exception, debug: bool) -> str:
    return f"{type(error).__name__}: {error}{'' if debug else _HINT}"


def _os_error(error: OSError, debug: bool) -> tuple[str, int]:
    """The line for an error of the operating system, and the exit code."""
    names = ", ".join(excerpt(str(name)) for name in (error.filename, error.filename2) if name is not None)
    if names and error.errno in _PATH_ERRORS:
        return f"{names}: {error.strerror}", WRONG_INPUT
    hint = "" if debug else _HINT
    what = f"[Errno {error.errno}] {error.strerror}" if error.strerror else str(error)
    return f"{type(error).__name__}: {what}{f': {names}' if names else ''}{hint}", FAILED


def _usage(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "shoal"
    see = f"see {command} --help"
    option, near = getattr(error, "option_name", ""), getattr(error, "possibilities", None)
    if option and near:
        # The nearest comes first.
        return f"No such option: {option}; did you mean {near[0]}? {see}"
    message = getattr(error, "format_message", error.__str__)()
    return f"{message.rstrip('.')}; {see}"


def _complain(line: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    sys.stderr.write(f"shoal: {one_line(line)}\n")
    return code
