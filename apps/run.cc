// strata run: answers a prompt, or talks.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>

#include "base/memory_ledger.h"
#include "base/printable.h"
#include "chat_loop.h"
#include "chat_session.h"
#include "commands.h"
#include "descriptors.h"
#include "options.h"
#include "probe/machine.h"
#include "read_input.h"
#include "run_answer.h"
#include "run_model.h"
#include "say.h"

namespace strata::apps {
namespace {

constexpr int kInterruptedExit = 130;  // what shells report after Ctrl-C

struct Options {
  std::string model;
  std::vector<std::string> words;
  std::string template_file;
  std::string think;
  bool raw = false;
  bool context_shift = false;
  bool verbose = false;
  int choices = 1;
  ChatSettings settings;
  EngineOptions engine;
};

// The words of the command line, then what is piped in; nullopt: neither, so talk.
Result<std::optional<std::string>> read_prompt(const Options& options) {
  std::string prompt = fmt::format("{}", fmt::join(options.words, " "));
  if (isatty(STDIN_FILENO) == 1)
    return options.words.empty() ? std::nullopt : std::optional(std::move(prompt));
  std::string piped;
  if (can_read_standard_input()) {
    STRATA_ASSIGN(piped, read_standard_input());
  }
  if (options.words.empty() && piped.empty())
    return invalid_argument("there is no prompt: give one after the model, or pipe it in");
  if (!prompt.empty() && !piped.empty()) prompt += "\n\n";
  return std::optional(prompt + piped);
}

class OneAnswer {
 public:
  OneAnswer(TalkingModel& model, const Options& options, SamplingParams sampling,
            Interrupts& interrupts)
      : model_(model), options_(options), sampling_(std::move(sampling)), interrupts_(interrupts) {}

  Result<int> run(std::string_view text) {
    STRATA_ASSIGN(Prompt prompt, make_prompt(text));
    const ThinkingTags tags = uses_template() ? model_.thinking_tags() : ThinkingTags();
    const bool terminal = isatty(STDOUT_FILENO) == 1;
    Printer printer(descriptor_out(STDOUT_FILENO),
                    {terminal, options_.settings.hide_thinking, tags});
    std::vector<AnswerText> texts;
    for (int i = 0; i < options_.choices; ++i)
      texts.emplace_back(*model_.tokenizer,
                         AnswerOptions{.stops = options_.settings.stops,
                                       .tags = tags,
                                       .starts_thinking = prompt.starts_thinking});
    Request request;
    request.tokens = std::move(prompt.tokens);
    request.sampling = sampling_;
    request.max_tokens = options_.settings.max_tokens;
    request.stop_tokens = model_.stop_tokens();
    if (options_.choices > 1) STRATA_TRY(announce(1));
    Timing timing;
    STRATA_ASSIGN(const Ending ending,
                  follow(*model_.engine, std::move(request), texts, printer, interrupts_, timing));
    STRATA_TRY(print_rest(texts, printer, ending));
    explain(ending, texts);
    if (options_.verbose) print_figures(timing);
    return ending.interrupted ? kInterruptedExit : 0;
  }

 private:
  bool uses_template() const { return model_.chat && !options_.raw; }

  Result<Prompt> make_prompt(std::string_view text) const {
    if (!uses_template()) {
      if (!options_.raw) say("note: no chat template: this completes the text\n");
      if (!options_.settings.system.empty())
        say("note: --system has no effect without a chat template\n");
      return model_.plain(text, options_.raw);
    }
    const std::string valid = as_utf8(text, "prompt");
    ChatSession session(
        [this](const boost::json::array& messages) {
          return model_.render(messages, options_.settings.think);
        },
        {.context = model_.engine->context()});
    session.set_system(as_utf8(options_.settings.system, "system message"));
    STRATA_ASSIGN(ChatSession::Turn turn, session.ask(valid));
    return std::move(turn.prompt);
  }

  static std::string as_utf8(std::string_view text, std::string_view what) {
    std::string valid = replace_invalid_utf8(text);
    if (valid != text) say("note: the {} is not UTF-8; wrong bytes became U+FFFD\n", what);
    return valid;
  }

  static Status announce(int number) {
    return descriptor_out(STDOUT_FILENO)(fmt::format("=== answer {} ===\n", number));
  }

  // The end of the first answer, and the others as a whole.
  Status print_rest(std::vector<AnswerText>& texts, Printer& printer, const Ending& ending) const {
    const auto end =
        ending.reason == FinishReason::kStop ? Detokenizer::End::kComplete : Detokenizer::End::kCut;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const AnswerDelta last = texts[i].finish(end);
      if (i > 0) STRATA_TRY(announce(static_cast<int>(i) + 1));
      STRATA_TRY(printer.reasoning(i > 0 ? texts[i].reasoning() : last.reasoning));
      STRATA_TRY(printer.content(i > 0 ? texts[i].content() : last.content));
      STRATA_TRY(printer.finish());
    }
    return {};
  }

  void explain(const Ending& ending, const std::vector<AnswerText>& texts) const {
    if (ending.reason == FinishReason::kContext)
      say("note: the context of {} tokens is full: the answer stops here\n",
          model_.engine->context());
    if (texts[0].content().empty() && !texts[0].reasoning().empty())
      say("note: the answer ended while the model was thinking\n");
    if (ended_at_once(ending, texts[0])) say("note: the model ended its answer at once\n");
  }

  void print_figures(const Timing& timing) const {
    say("{:<12} {}\n{:<12} {:.3f} s\n{}{:<12} peak {}, planned {}\n{:<12} {}\n", "device",
        model_.engine->device_name(), "load", model_.load_seconds, describe(timing), "memory",
        human_bytes(peak_resident_bytes()), human_bytes(model_.engine->plan().total()), "seed",
        sampling_.seed);
  }

  TalkingModel& model_;
  const Options& options_;
  SamplingParams sampling_;
  Interrupts& interrupts_;
};

Status check_chat(const TalkingModel& model, const Options& options) {
  if (options.raw) return invalid_argument("--raw completes a text: give one after the model");
  if (options.choices > 1) return invalid_argument("--choices needs a prompt");
  if (!model.chat)
    return invalid_argument(
        "this model has no chat template: pass one with --template FILE, or give a prompt to "
        "complete");
  return {};
}

Result<int> run(Options options) {
  std::signal(SIGPIPE, SIG_DFL);  // a reader that has enough ends the program without a word
  STRATA_ASSIGN(const std::optional<std::string> prompt, read_prompt(options));
  if (!options.think.empty()) {
    STRATA_ASSIGN(options.settings.think, parse_switch(options.think));
  }
  STRATA_ASSIGN(TalkingModel model, TalkingModel::open(options.model, options.template_file));
  if (!prompt) STRATA_TRY(check_chat(model, options));
  if (options.settings.think && (!model.chat || model.chat->thinking().switched_by.empty()))
    say("note: this model's template has no switch for thinking: no effect\n");
  SamplingSettings& settings = options.settings.sampling;
  for (const std::string& note :
       settings.take_from_file(model.manifest->metadata(), model.tokenizer->vocabulary_size()))
    say("note: {}\n", note);
  STRATA_ASSIGN(SamplingParams sampling, settings.resolve(*model.tokenizer));
  Interrupts interrupts;
  const Status loaded = model.load(options.engine, interrupts);
  if (loaded.code() == StatusCode::kCancelled) return kInterruptedExit;
  STRATA_TRY(loaded);
  if (prompt) return OneAnswer(model, options, std::move(sampling), interrupts).run(*prompt);
  if (options.verbose) say("{:<12} {:.3f} s\n", "load", model.load_seconds);
  STRATA_TRY(
      run_chat(model, {options.settings, options.context_shift, options.verbose}, interrupts));
  return 0;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("run", "Answer a prompt, or chat where none is given");
  command
      ->add_option("model", options->model,
                   "GGUF file (of a split model the first part), or the name of a cached model")
      ->required();
  command->add_option("prompt", options->words,
                      "The prompt; text piped in follows it. Without either: a chat");
  command->add_option("--system", options->settings.system, "System message");
  command
      ->add_option("--template", options->template_file,
                   "Jinja file that replaces the model's chat template")
      ->check(refuse_empty);
  command->add_flag("--raw", options->raw,
                    "Complete the prompt as it is, control tokens included, without a template");
  command->add_option("--think", options->think, "Thinking, where the template has a switch for it")
      ->check(CLI::IsMember({"on", "off"}));
  command->add_flag("--hide-thinking", options->settings.hide_thinking,
                    "Show only the answer, not the thinking before it");
  command
      ->add_option("--max-tokens,-n", options->settings.max_tokens,
                   "Tokens of an answer (default: until the model ends it)")
      ->check(CLI::Range(1, 1 << 28));
  command->add_option("--stop", options->settings.stops, "Text that ends an answer (repeatable)")
      ->allow_extra_args(false)
      ->check(refuse_empty);
  command->add_option("--choices", options->choices, "Answers to the same prompt")
      ->check(CLI::Range(1, 64));
  command->add_flag("--context-shift", options->context_shift,
                    "In a chat whose context is full, drop the oldest turns instead of stopping");
  command->add_flag("--verbose", options->verbose, "Print times and memory to standard error");
  add_sampling_options(*command, options->settings.sampling);
  add_engine_options(*command, options->engine);
  command->footer(
      "The model file's general.sampling.* values replace the defaults of options not given.");
  set_action(*command, exit_code, [options] { return run(*options); });
}

}  // namespace strata::apps
