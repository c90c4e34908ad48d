#!/usr/bin/env python3
"""strata run, end to end: as a user, a pipe and a terminal meet it."""

import json
import os
import signal
import subprocess
import tempfile
import unittest

import support
from support import BASE, INSTRUCT, REFERENCE, Terminal, main, needs, strata

TINY = REFERENCE / "llama.gguf"
FAST = ["--context", 512, "--greedy"]


def run(model, *arguments, **more):
    return strata("run", model, *arguments, *FAST, **more)


def write_template(folder, text):
    path = os.path.join(folder, "template.jinja")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


@needs(REFERENCE)
class OneAnswer(unittest.TestCase):
    def ok(self, *arguments, **more):
        done = run(TINY, *arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def fails(self, *arguments, code=1, **more):
        done = strata("run", *arguments, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_prints_the_same_answer_however_the_prompt_arrives(self):
        answer = self.ok("-n", 20, "one\n\ntwo")
        self.assertTrue(answer.endswith(b"\n"))
        answer.decode()  # whole characters only
        self.assertEqual(self.ok("-n", 20, stdin="one\n\ntwo"), answer)
        self.assertEqual(self.ok("-n", 20, "one", stdin="two"), answer)
        self.assertNotEqual(self.ok("-n", 20, "three"), answer)

    def test_a_stop_text_ends_the_answer_before_it(self):
        answer = self.ok("-n", 40, "--raw", "hello").decode().rstrip("\n")
        middle = answer[len(answer) // 2:][:3]
        cut = answer[:answer.index(middle)]
        shown = self.ok("-n", 40, "--raw", "--stop", middle, "hello").decode()
        self.assertEqual(shown, cut if cut.endswith("\n") else cut + "\n")

    def test_seeds_make_answers_repeatable(self):
        def sampled(seed):
            done = strata("run", TINY, "-n", 20, "--temp", 2, "--seed", seed, "-c", 256, "hello")
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout
        self.assertEqual(sampled(7), sampled(7))
        self.assertNotEqual(sampled(7), sampled(8))

    def test_choices_are_printed_one_after_the_other(self):
        done = strata("run", TINY, "-n", 8, "--choices", 3, "--seed", 3, "-c", 256, "hello")
        self.assertEqual(done.returncode, 0, done.stderr)
        for number in (1, 2, 3):
            self.assertEqual(done.stdout.count(b"=== answer %d ===\n" % number), 1)
        alone = strata("run", TINY, "-n", 8, "--seed", 3, "-c", 256, "hello").stdout
        self.assertTrue(done.stdout.startswith(b"=== answer 1 ===\n" + alone))

    def test_options_that_forbid_or_force_tokens_reach_the_sampler(self):
        forced = self.ok("-n", 4, "--logit-bias", "65=1000", "--raw", "hello")
        self.assertEqual(len(set(forced.split(b"\n")[0])), 1)
        self.assertIn(b"ID=VALUE", self.fails(TINY, "--logit-bias", "x=1", "hello", code=2))
        self.assertIn(b"top_p", self.fails(TINY, "--top-p", 3, "hello"))
        self.assertIn(b"no sampler 'x'", self.fails(TINY, "--samplers", "x", "hello", code=2))
        self.assertIn(b"1 to 40 are possible",
                      self.fails(TINY, "--dry-multiplier", 1, "--dry-breaker", "-" * 41, "hello"))

    def test_dry_keeps_an_answer_from_going_round(self):
        def letters(*options):
            return self.ok("-n", 30, "--raw", "--logit-bias", "65=1000", "--logit-bias", "66=990",
                           *options, "hello").split(b"\n")[0]
        self.assertEqual(len(set(letters())), 1)
        self.assertGreater(len(set(letters("--dry-multiplier", 1))), 1)

    def test_errors_are_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            text = os.path.join(folder, "text.gguf")
            with open(text, "w", encoding="utf-8") as file:
                file.write("this is no model\n" * 100)
            for model in (os.path.join(folder, "absent.gguf"), folder, text):
                message = self.fails(model, "hello")
                self.assertEqual(message.count(b"\n"), 1)
                self.assertIn(os.fsencode(model), message)
        self.assertIn(b"there is no prompt", self.fails(TINY))
        self.assertIn(b"memory budget", self.fails(TINY, "--memory", "1M", "hello"))
        self.assertIn(b"is no size", self.fails(TINY, "--memory", "much", "hello", code=2))

    def test_a_prompt_beyond_the_context_is_refused_with_numbers(self):
        message = self.fails(TINY, "-c", 64, stdin="many words " * 60)
        self.assertRegex(message, rb"the prompt has \d{3,} tokens but the context holds 64")
        message = self.fails(TINY, "-c", 64, stdin="many words " * 10000)
        self.assertRegex(message, rb"the prompt has \d{6} bytes, more than the context of 64 tok")

    def test_options_that_contradict_or_overflow_are_refused(self):
        for seed in ("-1", "1.5", "18446744073709551616", ""):
            self.assertIn(b"--seed", self.fails(TINY, "--seed", seed, "hello", code=2))
        self.assertIn(b"--greedy", self.fails(TINY, "--greedy", "--temp", 1, "hello", code=2))

    def test_other_programs_habits_get_stratas_way(self):
        for arguments, words in [
                (["rnu", TINY], b"no command 'rnu'; did you mean strata run?"),
                (["run", "-m", TINY, "hi"], b"-m is no option of strata run; the model is"),
                (["run", TINY, "-p", "hi"], b"the prompt comes after the model"),
                (["run", TINY, "-ngl", "99", "hi"], b"Strata computes on the CPU"),
                (["run", "-hf", "a/b"], b"-hf is no option of strata run; fetch the model"),
                (["-hf", "a/b"], b"-hf is no option of strata; fetch the model"),
                (["-m", TINY, "-p", "hi"], b"-m is no option of strata; the model is"),
                (["chat"], b"strata run MODEL without a prompt is a chat"),
                (["quantise"], b"no command 'quantise'; strata --help lists all"),
                (["show", ""], b"the name of the model is empty"),
                (["run", "", "hi"], b"the name of the model is empty")]:
            done = strata(*arguments)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count(b"\n"), 1)

    def test_empty_values_are_refused_not_dropped(self):
        for arguments in (["run", TINY, "hi", "--stop"], ["run", TINY, "hi", "--template"],
                          ["bench", TINY, "--peer"], ["bench", TINY, "--peer-name"],
                          ["bench", TINY, "--batch", "2", "--peer-batched"], ["bench", TINY, "-o"],
                          ["logits", TINY, "--tokens", "1", "-o"], ["pull", "pypi:a", "--index"],
                          ["perplexity", TINY, TINY, "--save-logits"]):
            done = strata(*arguments, "")
            self.assertEqual((done.returncode, done.stdout), (2, b""), arguments)
            self.assertIn(arguments[-1].encode(), done.stderr)
            self.assertIn(b"its value is empty", done.stderr)

    def test_errors_are_said_once_and_as_errors(self):
        model = support.ROOT / "tests/data/bert.gguf"
        for redirection in "> /dev/full", ">&-":
            done = support.strata_in_shell(redirection, "embed", model, "salt")
            self.assertEqual((done.returncode, done.stderr.count(b"standard output")), (1, 1))
        done = strata("template", TINY, "--messages", "nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith(b"error: "), done.stderr)

    def test_more_threads_than_processors_get_a_warning(self):
        threads = len(os.sched_getaffinity(0)) + 1
        done = run(TINY, "-n", 1, "-t", threads, "hello")
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"warning: {threads} threads ".encode(), done.stderr)

    def test_threads_that_would_only_wait_are_refused_by_every_command(self):
        threads = 8 * len(os.sched_getaffinity(0)) + 1
        for command in (["run", TINY], ["bench", TINY], ["serve", TINY], ["embed", TINY],
                        ["perplexity", TINY], ["logits", TINY], ["profile"]):
            done = strata(*command, "-t", threads)
            self.assertEqual(done.returncode, 2, command)
            self.assertIn(f"--threads: {threads} threads on ".encode(), done.stderr)

    def test_says_when_the_model_ends_its_answer_at_once(self):
        done = run(TINY, "-n", 1, "--logit-bias", "511=1000", "--verbose", "hello")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, b""))
        self.assertIn(b"note: the model ended its answer at once", done.stderr)
        self.assertRegex(done.stderr, rb"prompt +\d+ tokens in [\d.]+ s, [\d.]+ tokens/s")

    def test_says_when_the_context_is_full(self):
        done = strata("run", TINY, "-c", 64, "--greedy", "--logit-bias", "511=-inf", "hello")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"context of 64 tokens is full", done.stderr)

    def test_wrong_utf8_in_a_prompt_is_replaced_and_said(self):
        done = run(TINY, "-n", 4, stdin=b"bad \xff\xfe text")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"not UTF-8", done.stderr)
        done = run(TINY, "-n", 4, "--raw", stdin=b"bad \xff\xfe text")
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_closed_and_full_outputs_are_errors(self):
        with open("/dev/full", "wb") as full:
            done = run(TINY, "-n", 4, "hello", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left", done.stderr)
        command = [support.PROGRAM, "run", str(TINY), "-c", "256", "-n", "4", "hello"]
        for closing, code in ((">&-", 1), ("<&-", 0)):
            done = subprocess.run(["sh", "-c", f'exec "$@" {closing}', "sh", *command],
                                  capture_output=True, timeout=support.PATIENCE, check=False)
            self.assertEqual(done.returncode, code, done.stderr)

    def test_a_reader_that_leaves_ends_it_without_a_word(self):
        process = subprocess.Popen(
            [support.PROGRAM, "run", str(TINY), "-c", "4096", "--logit-bias", "511=-inf", "hello"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(1)
        process.stdout.close()
        self.assertEqual(process.wait(support.PATIENCE), -signal.SIGPIPE)
        self.assertNotIn(b"error", process.stderr.read())
        process.stderr.close()

    def test_an_interrupt_ends_the_answer_with_130(self):
        process = subprocess.Popen(
            [support.PROGRAM, "run", str(TINY), "-c", "4096", "--logit-bias", "511=-inf", "hello"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=support.PATIENCE)
        self.assertEqual(process.returncode, 130)
        self.assertTrue(out.endswith(b"\n"))

    def test_verbose_prints_figures_to_stderr(self):
        done = run(TINY, "-n", 4, "--verbose", "hello")
        self.assertRegex(done.stderr, rb"device +cpu .*threads?.*\nload +[\d.]+ s\n"
                         rb"prompt +\d+ tokens in [\d.]+ s, [\d.]+ tokens/s\n"
                         rb"generation +4 tokens, 3 behind the first in [\d.]+ s, .* tokens/s\n"
                         rb"memory +peak")
        self.assertEqual(run(TINY, "-n", 4, "hello").stderr, b"")

    def test_a_template_file_replaces_the_models(self):
        with tempfile.TemporaryDirectory() as folder:
            template = write_template(folder, "{% for m in messages %}{{ m.role }}:{{ m.content }}"
                                              "{% endfor %}")
            shown = self.ok("--template", template, "--system", "S", "-n", 20, "hello")
            # The template writes no BOS; the file's flag decides in both cases.
            self.assertEqual(self.ok("--raw", "-n", 20, "system:Suser:hello"), shown)
            broken = write_template(folder, "{% for %}")
            self.assertIn(b"template", self.fails(TINY, "--template", broken, "hello"))
            refusing = write_template(folder, "{{ raise_exception('no thanks') }}")
            self.assertIn(b"no thanks", self.fails(TINY, "--template", refusing, "hello"))

    def test_thinking_is_marked_hidden_and_switched(self):
        with tempfile.TemporaryDirectory() as folder:
            template = write_template(
                folder, "{% set end = '</think>' %}{{ messages[0].content }}"
                        "{{ '<think>' if enable_thinking is not false else 'plain' }}")
            options = ["--template", template, "-n", 8, "--logit-bias", "511=-inf", "hello"]
            thought = self.ok(*options)
            self.assertTrue(thought.startswith(b"<think>\n"))
            self.assertEqual(self.ok("--think", "on", *options), thought)
            self.assertNotIn(b"<think>", self.ok("--think", "off", *options))
            hidden = run(TINY, "--hide-thinking", *options)
            self.assertEqual((hidden.returncode, hidden.stdout), (0, b"\n"))
            self.assertIn(b"while the model was thinking", hidden.stderr)

    def test_control_tokens_in_a_message_stay_text(self):
        """A raw prompt may hold <|eos|>; a user's message that spells it is something else."""
        with tempfile.TemporaryDirectory() as folder:
            template = write_template(folder, "{{ messages[0].content }}")
            as_text = self.ok("--template", template, "-n", 20, "a<|eos|>b")
        self.assertNotEqual(self.ok("--raw", "-n", 20, "a<|eos|>b"), as_text)


@needs(INSTRUCT)
class Instruct(unittest.TestCase):
    def test_answers_in_words(self):
        done = run(INSTRUCT, "-n", 30, "--reference", "What is the capital of France?")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"Paris", done.stdout)

    def test_says_that_there_is_no_switch_for_thinking(self):
        done = run(INSTRUCT, "-n", 1, "--think", "on", "Hi")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"no switch for thinking", done.stderr)


@needs(BASE)
class BaseModel(unittest.TestCase):
    def test_completes_text_and_says_so_once(self):
        done = run(BASE, "-n", 8, "The capital of France is")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count(b"no chat template"), 1)
        self.assertEqual(run(BASE, "-n", 8, "--raw", "The capital of France is").stdout,
                         done.stdout)

    def test_refuses_to_chat_with_a_hint(self):
        terminal = Terminal("run", BASE)
        terminal.wait_for("--template FILE")
        self.assertEqual(terminal.close(), 1)


@needs(REFERENCE)
class Chat(unittest.TestCase):
    def start(self, *arguments, context=512):
        terminal = Terminal("run", TINY, "--greedy", "--context", context, *arguments)
        terminal.wait_for("/help lists the commands")
        terminal.wait_for(">>> ")
        return terminal

    def leave(self, terminal):
        terminal.type("/bye\r")
        self.assertEqual(terminal.close(), 0)

    def test_commands_answer_and_unknown_ones_are_named(self):
        terminal = self.start("-n", 8)
        terminal.type("/set temperature 0.25\r")
        terminal.wait_for(">>> ")
        terminal.type("/show\r")
        shown = terminal.wait_for(">>> ")
        self.assertRegex(shown, r"temperature +0\.25 +\(set here\)")
        self.assertRegex(shown, r"architecture +llama")
        terminal.type("/nonsense\r")
        self.assertIn("no command /nonsense", terminal.wait_for(">>> "))
        terminal.type("/set warmth 1\r")
        self.assertIn("no parameter 'warmth'", terminal.wait_for(">>> "))
        self.leave(terminal)

    def test_turns_are_counted_and_cleared(self):
        terminal = self.start("-n", 8)
        for text in ("hello\r", '"""two\r', 'lines"""\r'):
            terminal.type(text)
            terminal.wait_for("... " if text.startswith('"""') else ">>> ")
        terminal.type("/show\r")
        self.assertRegex(terminal.wait_for(">>> "), r"turns so far +2")
        terminal.type("/clear\r")
        terminal.wait_for(">>> ")
        terminal.type("/show\r")
        self.assertRegex(terminal.wait_for(">>> "), r"turns so far +0")
        self.leave(terminal)

    def test_ctrl_c_stops_an_answer_and_drops_a_line(self):
        terminal = self.start("--logit-bias", "511=-inf", context=4096)
        terminal.type("talk\r")
        terminal.wait_for("talk\r\n")
        terminal.wait_for_anything()
        terminal.type("\x03")
        terminal.wait_for("(stopped)")
        terminal.wait_for(">>> ")
        terminal.type("half a line\x03")
        terminal.wait_for("Ctrl-D or /bye leaves")
        terminal.wait_for(">>> ")
        terminal.type("\x04")
        self.assertEqual(terminal.close(), 0)

    def test_the_up_key_brings_back_a_line(self):
        terminal = self.start("-n", 4)
        terminal.type("/set top_k 3\r")
        terminal.wait_for(">>> ")
        terminal.type("\x1b[A")
        terminal.wait_for("/set top_k 3")
        terminal.type("\x03")
        terminal.wait_for(">>> ")
        self.leave(terminal)

    def test_a_full_context_stops_or_drops_the_oldest_turns(self):
        words = "some words that fill the context "
        terminal = self.start("-n", 20, context=200)
        terminal.type(words + "\r")
        terminal.wait_for(">>> ")
        for _ in range(8):
            terminal.type(words + "\r")
            if "context is full" in terminal.wait_for(">>> "):
                break
        else:
            self.fail("the context never filled up")
        self.leave(terminal)
        terminal = self.start("-n", 20, "--context-shift", context=200)
        dropped = ""
        for _ in range(9):
            terminal.type(words + "\r")
            dropped += terminal.wait_for(">>> ")
        self.assertIn("dropped the oldest", dropped)
        self.assertNotIn("error", dropped)
        self.leave(terminal)

    def test_no_escape_sequence_of_the_model_reaches_the_terminal(self):
        tokens = json.loads(strata("tokenize", TINY, "--no-bos", "--json", "\x1b").stdout)["tokens"]
        self.assertEqual(len(tokens), 1)
        options = ["-n", 8, "--logit-bias", f"{tokens[0]}=1000"]
        self.assertEqual(run(TINY, *options, "go").stdout, b"\x1b" * 8 + b"\n")
        terminal = self.start(*options)
        terminal.type("go\r")
        answer = terminal.wait_for("(max_tokens reached)")
        self.assertNotIn("\x1b", answer.split("\n", 1)[1])
        self.leave(terminal)


if __name__ == "__main__":
    main()
