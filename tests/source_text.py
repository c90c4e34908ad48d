"""Reads C++ just well enough for the checks: what is code, what is a comment, where bodies end."""

import bisect
import dataclasses
import re

TOKEN = re.compile(
    r"//(?:[^\n\\]|\\.)*"  # a line comment
    r"|/\*.*?\*/"
    r'|R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"'
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'",  # not the quote that groups digits
    re.DOTALL,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)


def blank(text):
    """Spaces in place of `text`, with its line ends kept."""
    return re.sub(r"[^\n]", " ", text)


@dataclasses.dataclass
class Comment:
    line: int
    text: str


class CppSource:
    """`code` has comments and the insides of strings blanked; `no_comments` only the comments.
    Both have the offsets of the file itself."""

    def __init__(self, text):
        self.text = text
        self.line_starts = [0] + [match.end() for match in re.finditer("\n", text)]
        self.comments = []
        code, no_comments, at = [], [], 0
        for match in TOKEN.finditer(text):
            between, token = text[at : match.start()], match.group()
            at = match.end()
            if token.startswith(("//", "/*")):
                self.comments.append(Comment(self.line_of(match.start()), token))
                code.append(between + blank(token))
                no_comments.append(between + blank(token))
            else:
                quote = token[-1]
                code.append(between + quote + blank(token[1:-1]) + quote)
                no_comments.append(between + token)
        self.code = "".join(code) + text[at:]
        self.no_comments = "".join(no_comments) + text[at:]

    def line_of(self, offset):
        return bisect.bisect_right(self.line_starts, offset)

    def directives(self):
        """(line, directive) of every preprocessor line, spaces around # removed."""
        for match in DIRECTIVE.finditer(self.code):
            directive = self.no_comments[match.start() : match.end()].strip()
            yield self.line_of(match.start()), re.sub(r"#\s*", "#", directive, count=1)


@dataclasses.dataclass
class Statement:
    """What stands at namespace or class scope: its head up to the body or the semicolon."""

    kind: str  # "function", "data", "declaration"
    scope: str  # "namespace" or "class"
    head: str
    line: int
    last_line: int
    body: str = ""


ATTRIBUTE = re.compile(r"\[\[[^\]]*\]\]|alignas\s*\([^()]*\)")


def without_brackets(text, opening, closing):
    """`text` without what stands between matching brackets, brackets included."""
    kept, depth = [], 0
    for character in text:
        if character == opening:
            depth += 1
        elif character == closing and depth > 0:
            depth -= 1
        elif depth == 0:
            kept.append(character)
    return "".join(kept)


def plain_head(head):
    """A head without attributes, template parameters and template arguments."""
    head = re.sub(r"\boperator\s*[^\s\w(]+", "operator_", head)
    head = ATTRIBUTE.sub(" ", head).replace("->", " ")
    head = without_brackets(head, "<", ">")
    head = re.sub(r"\b(public|private|protected)\s*:(?!:)", " ", head)
    return " ".join(head.split())


def block_kind(head):
    plain = re.sub(r"^(?:(?:template|inline|static|constexpr|typedef|export)\b\s*)+", "",
                   plain_head(head))
    if re.match(r"namespace\b", plain) or re.match(r'extern\s*"\s*"$', plain):
        return "namespace"
    if re.match(r"(class|struct|union)\b", plain) and not re.search(r"[()=]", plain):
        return "class"
    if re.match(r"enum\b", plain) and "(" not in plain:
        return "enum"
    before_value = re.split(r"(?<![=!<>])=(?!=)", plain_head(head))[0]
    if "(" in before_value or plain == "" or plain[0] in ",:":
        return "function"
    if re.search(r"=\s*\[", plain):
        return "function"  # a lambda that is given a name
    return "data"


def matching_brace(code, opening):
    depth = 0
    for match in re.compile("[{}]").finditer(code, opening):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    return len(code) - 1


def statements(source):
    """Yields the statements at namespace and class scope, in the order in which they end."""
    code = DIRECTIVE.sub(lambda match: blank(match.group()), source.code)
    scopes, start, at, first = ["namespace"], 0, 0, None
    mark = re.compile("[{};()]")
    parens = 0
    while match := mark.search(code, at):
        at = match.end()
        symbol = match.group()
        if symbol in "()":
            parens += 1 if symbol == "(" else -1
            continue
        head = code[start : match.start()]
        line = source.line_of(start + len(head) - len(head.lstrip())) if head.strip() else None
        if symbol == "}":
            if len(scopes) > 1:
                scopes.pop()
            start, first, parens = at, None, 0
        elif symbol == ";":
            if parens <= 0 and head.strip():
                last_line = source.line_of(match.start())
                yield Statement("declaration", scopes[-1], head, line, last_line)
            start, first, parens = at, None, 0
        else:
            kind = block_kind(head) if parens <= 0 else "inner"
            if kind in ("namespace", "class"):
                scopes.append(kind)
                start, first, parens = at, None, 0
                continue
            end = matching_brace(code, match.start())
            at = end + 1
            if kind == "inner":
                continue  # braces among arguments or default values: the head goes on
            body = code[match.start() : end + 1]
            if first is None or (head.strip() and head.strip()[0] not in ",:"):
                first = (head, line or source.line_of(match.start()))
            yield Statement(kind, scopes[-1], *first, source.line_of(end), body)
            tail = re.compile(r"\s*([;,]?)").match(code, at)
            if kind != "function" and tail.group(1) == ";":
                at = tail.end()
            start, parens = at, 0
