# SPDX-License-Identifier: Apache-2.0
"""What calls raise: an Error, which is a built-in exception too where one fits. Messages are those of the library."""

from qtensor._enums import Status


class Error(Exception):
    """A call that failed; `status` says why, its text is one line with the values in it."""

    status: Status


class InvalidError(Error, ValueError):
    """An argument is out of range or unknown."""

    status = Status.EINVAL


class ShapeError(Error, ValueError):
    """Shapes do not fit together."""

    status = Status.ESHAPE


class DTypeError(Error, TypeError):
    """An element type or quantization is not accepted here."""

    status = Status.EDTYPE


class OutOfMemoryError(Error, MemoryError):
    """Out of memory; objects are unchanged."""

    status = Status.ENOMEM


class FileError(Error, OSError):
    """A file could not be read or written."""

    status = Status.EIO


class FormatError(Error, ValueError):
    """Bytes are not a valid file of their kind."""

    status = Status.EFORMAT


class UnsupportedError(Error, NotImplementedError):
    """Valid, but not offered by this version."""

    status = Status.EUNSUPPORTED


class StateError(Error, RuntimeError):
    """Called at the wrong time: convert before calibrate, an object that is closed."""

    status = Status.ESTATE


class InternalError(Error, RuntimeError):
    """A defect of the library."""

    status = Status.EINTERNAL


class CanceledError(Error, RuntimeError):
    """A callback asked to stop."""

    status = Status.ECANCELED


BY_STATUS = {subclass.status.value: subclass for subclass in Error.__subclasses__()}
