#!/usr/bin/env python3
"""What the documents name exists: paths, make targets, subcommands, options and identifiers.

Checked is everything in backticks and in fenced blocks, and every link to a file. A word in
backticks must be a path, or stand as a whole word in the code, scripts or build files.
"""

import pathlib
import re
import sys

from tidy import ROOT, repository_files

DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
MAX_LINES = {"ARCHITECTURE.md": 200}
SOURCES = (".cc", ".h", ".py", ".sh", ".cmake", ".json", ".txt", "Makefile", ".ci/run")
PATH_ENDING = re.compile(r"\.(?:cc|h|md|py|sh|cmake|json|txt|gguf|jinja)$")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Repository:
    """The files of the repository and what they define."""

    def __init__(self, texts):
        self.paths = set(texts)
        for path in texts:
            self.paths.update(str(parent) for parent in pathlib.PurePosixPath(path).parents)
        sources = {path: text for path, text in texts.items() if path.endswith(SOURCES)}
        code = "\n".join(sources.values())
        self.words = set(WORD.findall(code))
        self.options = {"--help"} | set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", code))
        self.targets = set(re.findall(r"^([a-z-]+):(?!=)", texts.get("Makefile", ""), re.M))
        apps = "\n".join(text for path, text in sources.items() if path.startswith("apps/"))
        self.subcommands = set(re.findall(r'add_subcommand\(\s*"([a-z-]+)"', apps))
        self.programs = set(re.findall(r"add_executable\((\w+)", code))

    def has_path(self, name):
        """Whether a path, seen from the root or from src/, exists; it may hold *, <name> and {a,b}.
        A pattern without a folder may match in any."""
        for one in expand(name.rstrip("/")):
            pattern = re.sub(r"\\\*|<\w+>", "[^/]+", re.escape(one))
            anywhere = "(?:.*/)?" if "/" not in one and pattern != re.escape(one) else "(?:src/)?"
            if not any(re.fullmatch(anywhere + pattern, path) for path in self.paths):
                return False
        return True


def expand(pattern):
    """a/{b,c}.h as a/b.h and a/c.h."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if not match:
        return [pattern]
    return [whole for choice in match.group(1).split(",")
            for whole in expand(pattern[: match.start()] + choice.strip() + pattern[match.end():])]


def is_foreign(token):
    """A path of the user's machine, a variable of the shell, a placeholder or an address."""
    return token.startswith(("~", "$", "/", "<")) or "://" in token


def check_command(words, repository):
    """What is wrong with a command line of make or strata, as a list; None for anything else."""
    variables = [word for word in words if re.match(r"[A-Z_]+=", word)]
    words = [word for word in words if word not in variables]
    missing = [f"the variable {word.split('=')[0]} is not used anywhere" for word in variables
               if word.split("=")[0] not in repository.words]
    if not words:
        return missing if variables else None
    if words[0] == "make":
        return missing + [f"make has no target {word}" for word in words[1:]
                          if word not in repository.targets]
    program = words[0].removeprefix("./")
    if program in ("strata", "build/strata"):
        rest = [word for word in words[1:] if not word.startswith("-")]
        if "strata" not in repository.programs:
            missing.append("there is no program strata")
        if rest and rest[0] not in repository.subcommands:
            missing.append(f"strata has no subcommand {rest[0]}")
        return missing + [f"no option {word}" for word in option_words(words)
                          if word not in repository.options]
    return None


def option_words(words):
    return [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)]


def check_token(token, repository):
    """What is wrong with the text between two backticks, as a list."""
    words = token.split()
    if not words or is_foreign(words[0]):
        return []
    result = check_command(words, repository)
    if result is not None:
        return result
    if len(words) == 1:
        bare = token.rstrip(",.;:")
        if bare in repository.paths:
            return []
        if "/" in bare or PATH_ENDING.search(bare) or bare.startswith("."):
            if repository.has_path(bare) or bare in repository.words:
                return []
            return [f"{bare} is not there"]
        if re.match(r"--?[a-z]", bare):
            return [] if bare.split("=")[0] in repository.options else [f"no option {bare}"]
        if bare in repository.targets or bare in repository.subcommands:
            return []
    names = WORD.findall(token)
    return [f"{name} is not in the code" for name in names if name not in repository.words]


def check_document(name, text, repository):
    messages = []

    def add(line, wrong):
        messages.extend(f"{name}:{line}: {message}" for message in wrong)

    in_block = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            in_block = not in_block
        elif in_block:
            command = line.strip().removeprefix("$ ").split(" #")[0]
            words = re.sub(r'"[^"]*"', '""', command).split()
            add(number, check_command(words, repository) or [])
        else:
            for token in re.findall(r"`([^`]+)`", line):
                add(number, check_token(re.sub(r'"[^"]*"', '""', token), repository))
            for target in re.findall(r"\]\(([^)#]+)[^)]*\)", line):
                if "://" not in target and not repository.has_path(target):
                    add(number, [f"the link to {target} leads nowhere"])
    count = text.count("\n")
    if count > MAX_LINES.get(name, count):
        add(count, [f"{count} lines, more than {MAX_LINES[name]}"])
    return messages


def check_folders(architecture, repository):
    """Every folder of src/ is told of in ARCHITECTURE.md."""
    folders = sorted({path.split("/")[1] for path in repository.paths
                      if path.startswith("src/") and path.count("/") >= 2})
    return [f"ARCHITECTURE.md: does not tell of src/{folder}/" for folder in folders
            if not re.search(rf"\b{folder}/", architecture)]


def check(texts):
    """Checks the documents among {path: text}, against the rest."""
    repository = Repository(texts)
    messages = []
    for name in DOCUMENTS:
        if name not in texts:
            messages.append(f"{name}: is not there")
            continue
        messages += check_document(name, texts[name], repository)
    return messages + check_folders(texts.get("ARCHITECTURE.md", ""), repository)


def main():
    texts = {}
    for path in repository_files(ROOT):
        try:
            texts[path] = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            texts[path] = ""
        except FileNotFoundError:
            continue  # deleted, and not committed yet
    messages = check(texts)
    print("\n".join(messages))
    print(f"docs: {len(DOCUMENTS)} documents, {len(messages)} findings")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
