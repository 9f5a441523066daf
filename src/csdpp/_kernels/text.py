"""Rows of text as numbers: what is plain is read here, what is not is left to the caller.

All functions take the text as bytes and stop at what they do not know: they return -1, and the caller reads the same
text in another way, slower, that says what is wrong. A decimal number with a mantissa up to 2^53 and a power of ten up
to 22 is the quotient or product of two doubles that hold both exactly, so that one division or product rounds it as
`float` does; any other number is marked as odd, for `float` itself.
"""

import numpy as np
from numba import njit

COLON = ord(":")
COMMA, NEWLINE, BLANK, OPEN, CLOSE, ASKED = ord(","), ord("\n"), ord(" "), ord("{"), ord("}"), ord("?")
ZERO, NINE, POINT, PLUS, MINUS, BIG_E, SMALL_E = ord("0"), ord("9"), ord("."), ord("+"), ord("-"), ord("E"), ord("e")
POWERS = 10.0 ** np.arange(23)  # all of them exact
EXACT = 1 << 53

# What a column may hold: a number; 0 or 1; something else, which is always odd.
NUMBER, FLAG, OTHER = 0, 1, 2


@njit(cache=True, nogil=True, inline="always")
def _number(text, start, end):
    """The number in ``text[start:end]`` and whether it could be read here."""
    negative = False
    i = start
    if i < end and (text[i] == MINUS or text[i] == PLUS):
        negative = text[i] == MINUS
        i += 1
    mantissa = np.int64(0)
    power = np.int64(0)
    digits = 0
    pointed = False
    while i < end:
        byte = text[i]
        if ZERO <= byte <= NINE:
            if mantissa > EXACT // 16:
                return 0.0, False
            mantissa = mantissa * 10 + (byte - ZERO)
            digits += 1
            if pointed:
                power -= 1
        elif byte == POINT and not pointed:
            pointed = True
        else:
            break
        i += 1
    if digits == 0:
        return 0.0, False
    if i < end:
        if text[i] != SMALL_E and text[i] != BIG_E:
            return 0.0, False
        i += 1
        below = False
        if i < end and (text[i] == MINUS or text[i] == PLUS):
            below = text[i] == MINUS
            i += 1
        if i == end or end - i > 4:
            return 0.0, False
        exponent = np.int64(0)
        while i < end:
            if text[i] < ZERO or text[i] > NINE:
                return 0.0, False
            exponent = exponent * 10 + (text[i] - ZERO)
            i += 1
        power += -exponent if below else exponent
    if power > 22 or power < -22:
        return 0.0, False
    value = float(mantissa)
    value = value * POWERS[power] if power >= 0 else value / POWERS[-power]
    return -value if negative else value, True


@njit(cache=True, nogil=True, inline="always")
def _value(text, start, end, kind):
    """The value in ``text[start:end]`` of a column of that kind, NaN for ?; and whether it could be read here."""
    if end - start == 1:
        byte = text[start]
        if byte == ASKED:
            return np.nan, True
        if kind == FLAG:
            return float(byte - ZERO), byte == ZERO or byte == ZERO + 1
    if kind == NUMBER:
        return _number(text, start, end)
    return 0.0, False


@njit(cache=True, nogil=True)
def dense_rows(text, kinds, places, X, Y, odd):
    """Rows `value, value, ...` into ``X`` and ``Y``; the number of rows, or -1, and how many values are odd.

    Parameters
    ----------
    text : uint8 (size,)
    kinds : int8 (m,), the kind of each column
    places : int64 (m,), where it goes: column j of X as j, column k of Y as -1 - k
    X : float64 (n, d), Y : uint8 (n, K), with at least as many rows as the text has lines; written
    odd : int64 (o, 4), written: row, column, start and end of a value that only `float` or a table of names can read
    """
    m, size = len(kinds), len(text)
    i = row = found = 0
    while i < size:
        if text[i] == NEWLINE or text[i] == BLANK:
            i += 1
            continue
        for j in range(m):
            # Most fields of most files: 0 or 1 and a comma, four times faster than what any field may be.
            if (
                i + 1 < size
                and text[i + 1] == COMMA
                and ZERO <= text[i] <= ZERO + 1
                and j < m - 1
                and kinds[j] != OTHER
            ):
                place = places[j]
                if place >= 0:
                    X[row, place] = text[i] - ZERO
                else:
                    Y[row, -1 - place] = text[i] - ZERO
                i += 2
                continue
            while i < size and text[i] == BLANK:
                i += 1
            start = i
            while i < size and text[i] != COMMA and text[i] != NEWLINE:
                i += 1
            end = i
            while end > start and text[end - 1] == BLANK:
                end -= 1
            last = i == size or text[i] == NEWLINE
            if last != (j == m - 1) or end == start or text[start] == OPEN:
                return -1, 0
            i += 1
            value, known = _value(text, start, end, kinds[j])
            place = places[j]
            if not known:
                if found == len(odd):
                    return -1, 0
                odd[found, 0], odd[found, 1], odd[found, 2], odd[found, 3] = row, j, start, end
                found += 1
            elif place >= 0:
                X[row, place] = value
            elif value == 0.0 or value == 1.0:
                Y[row, -1 - place] = np.uint8(value)
            else:
                return -1, 0
        row += 1
    return row, found


@njit(cache=True, nogil=True)
def sparse_rows(text, kinds, places, X, Y, odd):
    """Rows `{index value, ...}`, indices rising, as CSR; the number of rows, or -1, and how many values are odd.

    As `dense_rows`, except: ``X`` is (columns, values, ends), int64, float64 and int64 arrays that take as many
    entries and rows as the text has commas and lines, and ``Y`` (columns, ends). Zeros are not stored. Of an odd value
    the first number is its place among X's entries.
    """
    x_columns, x_values, x_ends = X
    y_columns, y_ends = Y
    m, size = len(kinds), len(text)
    i = row = found = x = y = 0
    while i < size:
        if text[i] == NEWLINE or text[i] == BLANK:
            i += 1
            continue
        if text[i] != OPEN:
            return -1, 0
        i += 1
        before = np.int64(-1)
        while i < size and text[i] == BLANK:
            i += 1
        while i < size and text[i] != CLOSE:
            j = np.int64(0)
            start = i
            while i < size and ZERO <= text[i] <= NINE and i - start < 10:
                j = j * 10 + (text[i] - ZERO)
                i += 1
            if i in (start, size) or j >= m or j <= before or text[i] != BLANK:
                return -1, 0
            before = j
            while i < size and text[i] == BLANK:
                i += 1
            start = i
            while i < size and text[i] != COMMA and text[i] != CLOSE and text[i] != NEWLINE and text[i] != BLANK:
                i += 1
            end = i
            while i < size and text[i] == BLANK:
                i += 1
            if i == size or end == start or (text[i] != COMMA and text[i] != CLOSE):
                return -1, 0
            if text[i] == COMMA:
                i += 1
                while i < size and text[i] == BLANK:
                    i += 1
                if i == size or text[i] == CLOSE:
                    return -1, 0
            value, known = _value(text, start, end, kinds[j])
            place = places[j]
            if place >= 0:
                if not known:
                    if found == len(odd):
                        return -1, 0
                    odd[found, 0], odd[found, 1], odd[found, 2], odd[found, 3] = x, j, start, end
                    found += 1
                if not known or value != 0.0:
                    x_columns[x] = place
                    x_values[x] = value
                    x += 1
            elif known and value == 1.0:
                y_columns[y] = -1 - place
                y += 1
            elif not known or value != 0.0:
                return -1, 0
        if i == size:
            return -1, 0
        i += 1
        while i < size and text[i] == BLANK:
            i += 1
        if i < size and text[i] != NEWLINE:
            return -1, 0
        row += 1
        x_ends[row] = x
        y_ends[row] = y
    return row, found


@njit(cache=True, nogil=True)
def entry_rows(text, bounds, X, Y, odd):
    """Rows `label,label index:value ...` (labels and indices rising), one a line, as CSR; as `sparse_rows`.

    Parameters
    ----------
    bounds : int64 (5,): features, labels, what features count from, what labels count from, 1 if there are labels
    odd : int64 (o, 3), written: place among X's entries, start and end of a value that only `float` can read
    """
    x_columns, x_values, x_ends = X
    y_columns, y_ends = Y
    size = len(text)
    i = row = found = x = y = 0
    while i < size:
        if bounds[4] == 1 and ZERO <= text[i] <= NINE:
            j = i
            while j < size and text[j] != BLANK and text[j] != NEWLINE and text[j] != COLON:
                j += 1
            before = np.int64(-1)
            while j == size or text[j] != COLON:  # else the first word is a feature
                start = i
                label = np.int64(0)
                while i < size and ZERO <= text[i] <= NINE and i - start < 10:
                    label = label * 10 + (text[i] - ZERO)
                    i += 1
                label -= bounds[3]
                if i == start or label <= before or label >= bounds[1]:
                    return -1, 0
                before = label
                y_columns[y] = label
                y += 1
                if i == size or text[i] != COMMA:
                    break
                i += 1
            if i < size and before >= 0 and text[i] != BLANK and text[i] != NEWLINE:
                return -1, 0
        before = np.int64(-1)
        while i < size and text[i] != NEWLINE:
            if text[i] == BLANK:
                i += 1
                continue
            start = i
            index = np.int64(0)
            while i < size and ZERO <= text[i] <= NINE and i - start < 10:
                index = index * 10 + (text[i] - ZERO)
                i += 1
            index -= bounds[2]
            if i in (start, size) or text[i] != COLON or index <= before or index >= bounds[0]:
                return -1, 0
            before = index
            i += 1
            start = i
            while i < size and text[i] != BLANK and text[i] != NEWLINE:
                i += 1
            if i == start:
                return -1, 0
            value, known = _number(text, start, i)
            if not known:
                if found == len(odd):
                    return -1, 0
                odd[found, 0], odd[found, 1], odd[found, 2] = x, start, i
                found += 1
            if not known or value != 0.0:
                x_columns[x] = index
                x_values[x] = value
                x += 1
        i += 1
        row += 1
        x_ends[row] = x
        y_ends[row] = y
    return row, found
