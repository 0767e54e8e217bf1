"""Reads C++ as far as the house rules need: comments, literals and brackets."""

import re


def code_of(text):
    """Returns `text` with comments and the insides of literals blanked. Its length and its lines stay the same."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group(0))
    quoted = lambda match: match.group(0)[0] + blank(match)[1:-1] + match.group(0)[-1]
    token = re.compile(
        r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)|(?P<raw>R"(?P<mark>[^\s()\\]*)\(.*?\)(?P=mark)")|(?P<number>\b\d[\w.']*)"""
        r"""|(?P<literal>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
        re.DOTALL,
    )

    def replace(match):
        if match.group("number"):  # A quote between digits is a digit separator, not a literal.
            return match.group(0)
        return blank(match) if match.group("comment") or match.group("raw") else quoted(match)

    return token.sub(replace, text)


class Level:
    """An open bracket, and the statement that has begun inside it and not ended."""

    def __init__(self, bracket, kind, function=None):
        self.bracket = bracket
        self.kind = kind  # "namespace", "class", "function", "block" (a branch, a loop), "value" (anything else)
        self.function = function  # The position at which the function begins, if this is a function's body.
        self.start = None  # The position at which the statement begins.
        self.lambda_start = None


def kind_of_brace(header):
    """Returns the kind of scope that a `{` opens. `header` is the statement's text before it."""
    if not header or re.match(r"(else|do|try)$|((else )?if|for|while|switch|catch)\b|(case\b.*|default) ?:$", header):
        return "block"
    if re.match(r'(inline )?namespace\b|extern\b *"', header):
        return "namespace"
    # The second alternative is for an attribute, as in `class ABSL_LOCKABLE("m") A`.
    if re.match(r"(template ?<.*> ?)?(typedef )?((class|struct|enum|union)\b[^()]*$|(class|struct)\b.*\) \w+( final)?( :.*)?$)", header):
        return "class"
    if re.search(r"[)\]]$|\) ?(?:(?:const|noexcept|override|final|mutable|try)\b ?|&+ ?)+$|\).* ?-> ?[\w:<>,*& ]+$", header):
        return "function"
    if re.search(r"\) ?:[^:].*}$", header):  # The `{` follows the braces of a constructor's last initializer.
        return "function"
    return "value"


class Source:
    """The structure of a C++ source. It reads brackets only, so it depends neither on the whole language nor on the layout.

    functions: (first line, last line) of each function and lambda.
    statements: (line, text, kind of the enclosing scope) of each statement that ends with a semicolon.
    balanced: whether every bracket has its counterpart. If not, functions and statements are unreliable.
    """

    def __init__(self, text):
        blank = lambda match: re.sub(r"[^\n]", " ", match.group(0))
        code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", blank, code_of(text), flags=re.MULTILINE)
        code = re.sub(r"\b(public|private|protected)[ \t]*:(?!:)", lambda match: " " * (len(match.group(0)) - 1) + ";", code)
        self.code = code
        self.functions, self.statements, self.balanced = [], [], True
        self.levels = [Level("", "namespace")]
        for match in re.finditer(r"\S", code):
            self.read(match.group(0), match.start())
        self.balanced = self.balanced and len(self.levels) == 1

    def line_of(self, position):
        return self.code.count("\n", 0, position) + 1

    def read(self, letter, at):
        level = self.levels[-1]
        if letter == ";" or (letter == "," and level.bracket in ("(", "[")):
            if letter == ";" and level.start is not None:
                self.statements.append((self.line_of(level.start), self.header(at), level.kind))
            level.start = level.lambda_start = None
        elif letter in "([{":
            if level.start is None:
                level.start = at
            self.open(letter, at)
        elif letter in ")]}":
            self.close(letter, at)
        elif level.start is None:
            level.start = at

    def header(self, at):
        """Returns the text of the current statement up to `at`."""
        return " ".join(self.code[self.levels[-1].start : at].split())

    def open(self, letter, at):
        level, header = self.levels[-1], self.header(at)
        if letter == "[" and not re.search(r"[\w)\]\[]$", re.sub(r"\b(return|co_return|case)$", "", header)):
            level.lambda_start = at
        kind, function = "value", None
        if letter == "{":
            kind = kind_of_brace(header)
            if kind == "function":
                function = level.start if level.lambda_start is None else level.lambda_start
            elif kind != "value":
                level.start = None
        self.levels.append(Level(letter, kind, function))

    def close(self, letter, at):
        level = self.levels[-1]
        if level.bracket + letter not in ("()", "[]", "{}"):
            self.balanced = False
            return
        self.levels.pop()
        outer = self.levels[-1]
        if level.kind == "function":
            self.functions.append((self.line_of(level.function), self.line_of(at)))
            if outer.lambda_start is None:
                outer.start = None
        if letter == "}":
            outer.lambda_start = None
