"""What the package raises.

CsdppError
├── InvalidInput (also a ValueError): data that cannot be used
│   ├── InvalidParameter: a parameter that cannot be used
│   └── DataFormatError: a file that does not keep to its format
├── MissingData (also a FileNotFoundError): files of data that are not there
└── FetchError (also an OSError): a data set that could not be had from where it is offered

UserWarning
└── CostConditionWarning: a user's cost for which Lemma 2 of the paper does not hold

Every message is one sentence: who asks, what was required, what came, what to do.
"""


class CsdppError(Exception):
    """Base of all errors of this package."""


class InvalidInput(CsdppError, ValueError):
    """Data that cannot be used: wrong shape, wrong values, a user's function that returns no number."""


class InvalidParameter(InvalidInput):
    """A parameter that cannot be used: unknown name, wrong type, out of range."""


class DataFormatError(InvalidInput):
    """A file that does not keep to its format: the message names file, line and what was expected."""


class MissingData(CsdppError, FileNotFoundError):
    """Files of data that are not there: the message names them, where they were looked for and what to do."""


class FetchError(CsdppError, OSError):
    """A data set that could not be had: no answer, a refusal, or other bytes than promised."""


class CostConditionWarning(UserWarning):
    """A user's cost violates c(y, y) = 0 or rises when a label is put right: Lemma 2 fails."""
