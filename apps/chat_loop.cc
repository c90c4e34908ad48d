#include "chat_loop.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

#include "base/memory_ledger.h"
#include "base/printable.h"
#include "chat_printer.h"
#include "chat_reader.h"
#include "chat_session.h"
#include "probe/machine.h"
#include "run_answer.h"
#include "say.h"

namespace strata::apps {
namespace {

constexpr std::string_view kHelp =
    "  /set NAME VALUE  change a parameter; /show lists them\n"
    "  /show            the parameters and the model\n"
    "  /clear           forget the conversation\n"
    "  /bye             leave (also Ctrl-D)\n"
    "  \"\"\"              opens a text of several lines, and closes it\n"
    "  Ctrl-C           stops an answer\n";

// The first word and, without the white space between, the rest.
std::pair<std::string_view, std::string_view> split_word(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kSpace));
  std::string_view rest = text.substr(word.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(kSpace), rest.size()));
  return {word, rest};
}

class Chat {
 public:
  Chat(TalkingModel& model, ChatOptions options, Interrupts& interrupts)
      : model_(model),
        options_(std::move(options)),
        interrupts_(interrupts),
        stop_tokens_(model.stop_tokens()),
        session_([this](const boost::json::array& messages) { return render(messages); }, {}) {
    session_.set_system(options_.settings.system);
    update_limits();
  }

  Status run() {
    STRATA_ASSIGN(sampling_, options_.settings.sampling.resolve(*model_.tokenizer));
    STRATA_ASSIGN(const auto reader, LineReader::create());
    say("{}, {} tokens of context. /help lists the commands.\n", model_.name,
        model_.engine->context());
    MessageAssembler assembler;
    for (std::string line; !leaving_;) {
      interrupts_.forget();
      const auto outcome = reader->read(assembler.open() ? "... " : ">>> ", line);
      interrupts_.forget();
      if (outcome != LineReader::Outcome::kLine) say("\n");
      if (outcome == LineReader::Outcome::kEnd) break;
      if (outcome == LineReader::Outcome::kInterrupted) {
        if (!assembler.open()) say("Ctrl-D or /bye leaves.\n");
        assembler.reset();
      } else if (assembler.add(line)) {
        STRATA_TRY(handle(assembler.take()));
      }
    }
    return {};
  }

 private:
  Result<Prompt> render(const boost::json::array& messages) const {
    return model_.render(messages, options_.settings.think);
  }

  void update_limits() {
    const std::int32_t context = model_.engine->context();
    const std::int32_t limit = options_.settings.max_tokens;
    const std::int32_t quarter = std::max(context / 4, 1);
    session_.set_limits(
        {context, limit > 0 ? std::min(limit, quarter) : quarter, options_.context_shift});
  }

  // Only a failure to show anything ends the chat; others are shown.
  Status handle(const MessageAssembler::Message& message) {
    const auto [word, rest] = split_word(message.text);
    if (word.empty()) return {};
    if (!message.quoted && word.starts_with('/')) {
      command(word, rest);
      return {};
    }
    return ask(replace_invalid_utf8(message.text));
  }

  void command(std::string_view word, std::string_view rest) {
    if (word == "/bye" || word == "/exit" || word == "/quit") {
      leaving_ = true;
    } else if (word == "/help" || word == "/?") {
      say("{}", kHelp);
    } else if (word == "/clear") {
      session_.clear();
      say("The conversation is forgotten.\n");
    } else if (word == "/show") {
      show();
    } else if (word == "/set") {
      set(rest);
    } else {
      say("There is no command {}; /help lists them.\n", printable(word, 32));
    }
  }

  void set(std::string_view rest) {
    const auto [name, value] = split_word(rest);
    if (name.empty()) {
      say("Write /set NAME VALUE, for example /set temperature 0.5.\n");
      return;
    }
    ChatSettings changed = options_.settings;
    const Status status = changed.set(name, value, model_.tokenizer->vocabulary_size());
    if (!status.ok()) return report(status);
    auto sampling = changed.sampling.resolve(*model_.tokenizer);
    if (!sampling.ok()) return report(sampling.status());
    sampling_ = std::move(*sampling);
    options_.settings = std::move(changed);
    if (name == "think" && model_.chat->thinking().switched_by.empty())
      say("This model's template has no switch for thinking: no effect.\n");
    session_.set_system(options_.settings.system);
    update_limits();
  }

  void show() const {
    const Engine& engine = *model_.engine;
    say("Parameters\n{}Model\n", options_.settings.describe());
    const auto line = [](std::string_view name, const auto& value) {
      say("  {:<18} {}\n", name, value);
    };
    line("name", model_.name);
    line("file", printable(engine.manifest().file().paths().front()));
    line("architecture", printable(engine.manifest().architecture(), 64));
    line("device", engine.device_name());
    line("context", fmt::format("{} tokens", engine.context()));
    line("memory", fmt::format("{} of {}", human_bytes(engine.plan().total()),
                               human_bytes(engine.plan().budget)));
    line("turns so far", session_.turns());
  }

  static void report(const Status& status) {
    say("error: {}\n", printable(status.message(), 4096));
  }

  Status ask(std::string_view text) {
    auto turn = session_.ask(text);
    if (!turn.ok()) {
      report(turn.status());
      if (turn.status().code() == StatusCode::kResourceExhausted)
        say("/clear starts again; --context-shift drops the oldest turns.\n");
      return {};
    }
    const ChatSettings& settings = options_.settings;
    Printer printer(descriptor_out(STDOUT_FILENO),
                    {isatty(STDOUT_FILENO) == 1, settings.hide_thinking, model_.thinking_tags()});
    AnswerText answer(*model_.tokenizer, {.stops = settings.stops,
                                          .tags = model_.thinking_tags(),
                                          .starts_thinking = turn->prompt.starts_thinking});
    Timing timing;
    const auto ending = follow_turns(std::move(*turn), answer, printer, timing);
    const bool done = ending.ok() && ending->reason == FinishReason::kStop;
    const auto last = answer.finish(done ? Detokenizer::End::kComplete : Detokenizer::End::kCut);
    STRATA_TRY(printer.reasoning(last.reasoning));
    STRATA_TRY(printer.content(last.content));
    STRATA_TRY(printer.finish());
    session_.answer(answer.reasoning(), answer.content());
    if (!ending.ok())
      report(ending.status());
    else
      explain(*ending, answer);
    if (options_.verbose)
      say("{}{:<12} peak {}\n", describe(timing), "memory", human_bytes(peak_resident_bytes()));
    return {};
  }

  // Where the context fills up and turns may be dropped, the answer goes on after fewer of them.
  Result<Ending> follow_turns(ChatSession::Turn turn, AnswerText& answer, Printer& printer,
                              Timing& timing) {
    for (;;) {
      if (turn.dropped > 0)
        say("{}(the context is full: dropped the oldest {} of the conversation)\n",
            answer.tokens().empty() ? "" : "\n",
            turn.dropped == 1 ? "turn" : fmt::format("{} turns", turn.dropped));
      const auto produced = static_cast<std::int32_t>(answer.tokens().size());
      Request request;
      request.tokens = std::move(turn.prompt.tokens);
      request.tokens.insert(request.tokens.end(), answer.tokens().begin(), answer.tokens().end());
      request.sampling = sampling_;
      request.stop_tokens = stop_tokens_;
      const std::int32_t limit = options_.settings.max_tokens;
      request.max_tokens = limit > 0 ? limit - produced : -1;
      STRATA_ASSIGN(const Ending ending, follow(*model_.engine, std::move(request), {&answer, 1},
                                                printer, interrupts_, timing));
      if (ending.reason != FinishReason::kContext || ending.interrupted) return ending;
      auto more = session_.make_room(static_cast<std::int32_t>(answer.tokens().size()));
      if (!more.ok()) return ending;
      turn = std::move(*more);
    }
  }

  void explain(const Ending& ending, const AnswerText& answer) const {
    if (ending.interrupted)
      say("(stopped)\n");
    else if (ending.reason == FinishReason::kContext)
      say("(the context of {} tokens is full: the answer stops here; {})\n",
          model_.engine->context(),
          options_.context_shift ? "/clear starts again"
                                 : "/clear starts again, --context-shift drops old turns");
    else if (ending.reason == FinishReason::kLength)
      say("(max_tokens reached)\n");
    if (answer.content().empty() && !answer.reasoning().empty())
      say("(the answer ended while the model was thinking)\n");
    if (ended_at_once(ending, answer)) say("(the model ended its answer at once)\n");
  }

  TalkingModel& model_;
  ChatOptions options_;
  SamplingParams sampling_;  // of the settings, for requests
  Interrupts& interrupts_;
  std::vector<TokenId> stop_tokens_;
  ChatSession session_;
  bool leaving_ = false;
};

}  // namespace

Status run_chat(TalkingModel& model, ChatOptions options, Interrupts& interrupts) {
  return Chat(model, std::move(options), interrupts).run();
}

}  // namespace strata::apps
