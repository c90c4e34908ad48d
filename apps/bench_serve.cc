// strata bench serve: how a server answers many at a time, this program's or another.
#include "bench_serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/file.h"
#include "base/printable.h"
#include "bench_result.h"
#include "bench_serve_load.h"
#include "bench_serve_report.h"
#include "bench_serve_target.h"
#include "bench_serve_trace.h"
#include "options.h"
#include "say.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

constexpr std::int32_t kMostTokens = 1 << 24;
constexpr std::int32_t kWarmUpTokens = 8;
constexpr std::int32_t kTemplateRoom = 16;  // tokens that a chat template may add to a message

struct Options {
  TargetOptions target;
  std::string endpoint = "chat";
  std::string more;  // JSON
  bool ignore_end = false;
  double timeout = 600;
  std::string prompt = "512", answer = "128";
  std::string burst_prompt, burst_answer;  // empty: as the others
  std::string good;
  LoadOptions load;
  bool trace = false;
  TraceOptions agent;
  std::int32_t context = 0;
  bool as_json = false;
  std::string output;
};

Status check(const Options& options) {
  if (options.target.url.empty() == options.target.model.empty())
    return invalid_argument("name the address of a server, or a model to start one with (--model)");
  if (options.trace && (options.load.burst > 0 || options.load.rate > 0))
    return invalid_argument("--agents is a load of its own, without --rate and --burst");
  if (options.load.burst > 0 && options.load.rate > 0)
    return invalid_argument("a burst comes beside --users, not beside a --rate");
  return options.output.empty() ? Status() : check_new_file(options.output);
}

Result<Protocol> protocol_of(const Options& options, const ServeTarget& target) {
  Protocol protocol;
  protocol.chat = options.endpoint == "chat";
  protocol.model = target.model();
  protocol.headers = target.headers();
  protocol.ignore_end = options.ignore_end;
  protocol.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout * 1e3));
  if (options.more.empty()) return protocol;
  boost::system::error_code error;
  const json::value more = json::parse(options.more, error);
  if (error || !more.is_object())
    return invalid_argument("--body '{}' is no JSON object", printable(options.more, 200));
  protocol.more = more.get_object();
  return protocol;
}

// Pages come in, and a model that was not loaded is.
Status warm_up(ServeAsker& asker, const WordList& words, std::uint64_t seed) {
  Draws draws(~seed, Draws::Use::kSide, 0);
  Status status;
  asker.ask("", {{"user", words.text(draws, kWarmUpTokens)}}, kWarmUpTokens,
            [&](const ServeRecord& record) {
              if (!record.complete())
                status = unsupported("the server does not answer: {}{}{}", record.error,
                                     record.detail.empty() ? "" : ": ", record.detail);
            });
  asker.client().run();
  return status;
}

// As long as asked, or what the context leaves beside the turns.
Status fit_trace(const ServeTarget& target, std::int32_t context, TraceOptions& trace) {
  std::optional<std::int32_t> room;
  if (context > 0) room = context;
  if (!room) {
    STRATA_ASSIGN(room, target.context());
  }
  if (!room) {
    say("note: {} does not say how long a context is; see --context\n", target.url());
    return {};
  }
  std::int64_t taken = 0;
  for (std::int32_t turn = 0; turn < trace.turns; ++turn) {
    Draws draws(trace.seed, Draws::Use::kAnswer, static_cast<std::uint64_t>(turn));
    taken += trace.turn_tokens + trace.answer.draw(draws) + 2 * kTemplateRoom;
  }
  // Answers may read back as more tokens than they were.
  const std::int64_t left = *room - taken * 5 / 4 - trace.turn_tokens - 4 * kTemplateRoom;
  if (left < 1)
    return invalid_argument(
        "{} turns of {} tokens and their answers do not fit into a context of {} tokens",
        trace.turns, trace.turn_tokens, *room);
  if (left < trace.prompt) {
    say("note: prompts of {} tokens, which the context of {} tokens leaves room for\n", left,
        *room);
    trace.prompt = static_cast<std::int32_t>(left);
  }
  return {};
}

// Of all loads; what is not limited is not there.
void add_limits(const Options& options, const Protocol& protocol, const GoodLimits& limits,
                json::object& out) {
  out["timeout"] = options.timeout;
  if (!protocol.more.empty()) out["body"] = protocol.more;
  if (limits.given()) out["good"] = limits.json();
}

json::object settings_of(const Options& options, const ServeTarget& target, bool exact) {
  json::object out{{"url", target.url()},          {"model", target.model()},
                   {"endpoint", options.endpoint}, {"ignore_eos", options.ignore_end},
                   {"tokens_counted", exact},      {"seed", options.load.seed},
                   {"answer", options.answer},     {"shared_prefix", options.load.shared_prefix}};
  if (options.trace) {
    out["agents"] = options.agent.agents;
    out["prompt"] = options.agent.prompt;
    out["turns"] = options.agent.turns;
    out["turn_tokens"] = options.agent.turn_tokens;
    return out;
  }
  out["prompt"] = options.prompt;
  out["distinct"] = options.load.distinct;
  if (options.load.requests > 0) out["requests"] = options.load.requests;
  if (options.load.seconds > 0) out["seconds"] = options.load.seconds;
  if (options.load.rate > 0)
    out["rate"] = options.load.rate;
  else
    out["users"] = options.load.users;
  if (options.load.burst > 0) {
    out["burst"] = options.load.burst;
    out["burst_after"] = options.load.burst_after;
    out["burst_prompt"] = options.load.burst_prompt.name();
    out["burst_answer"] = options.load.burst_answer.name();
  }
  return out;
}

Status write(const Options& options, const std::string& text) {
  if (options.output.empty()) return print(text);
  STRATA_ASSIGN(File file, File::create(options.output));
  STRATA_TRY(file.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
  return file.close();
}

// The first that was said of every kind.
void say_errors(const std::vector<ServeRecord>& records) {
  std::map<std::string, std::string> said;
  for (const ServeRecord& record : records)
    if (!record.detail.empty()) said.try_emplace(record.error, record.detail);
  for (const auto& [kind, detail] : said) say("note: {}: {}\n", kind, detail);
  const auto odd = [](const ServeRecord& record) { return !record.odd_usage.empty(); };
  const auto first = std::ranges::find_if(records, odd);
  if (first != records.end())
    say("note: {} answers came with counts of tokens that cannot be true, which are ignored like "
        "missing ones: {}\n",
        std::ranges::count_if(records, odd), first->odd_usage);
}

Status check_any_complete(const std::vector<ServeRecord>& records) {
  if (std::ranges::any_of(records, &ServeRecord::complete)) return {};
  const ServeRecord* first = nullptr;
  for (const ServeRecord& record : records)
    if (!record.error.empty() && (first == nullptr || record.start < first->start)) first = &record;
  if (first == nullptr)
    return unsupported("no answer was complete when the load ended; give it more --seconds");
  return unsupported("none of the {} requests had a whole answer; the first: {}{}{}",
                     records.size(), first->error, first->detail.empty() ? "" : ": ",
                     first->detail);
}

Status read_lengths(Options& options) {
  LoadOptions& load = options.load;
  const auto either = [](const std::string& text, const std::string& otherwise) {
    return LengthDistribution::parse(text.empty() ? otherwise : text);
  };
  STRATA_ASSIGN(load.prompt, LengthDistribution::parse(options.prompt));
  STRATA_ASSIGN(load.answer, LengthDistribution::parse(options.answer));
  STRATA_ASSIGN(load.burst_prompt, either(options.burst_prompt, options.prompt));
  STRATA_ASSIGN(load.burst_answer, either(options.burst_answer, options.answer));
  options.agent.answer = load.answer;
  return {};
}

Result<int> run(Options options) {
  STRATA_TRY(check(options));
  ServeReport report;
  if (!options.good.empty()) {
    STRATA_ASSIGN(report.limits, GoodLimits::parse(options.good));
  }
  STRATA_TRY(read_lengths(options));
  if (options.load.requests == 0 && options.load.seconds == 0 && options.load.burst == 0)
    options.load.requests = options.load.rate > 0 ? 100 : 4 * options.load.users;
  STRATA_ASSIGN(const ServeTarget target, ServeTarget::open(options.target));
  STRATA_ASSIGN(const Protocol protocol, protocol_of(options, target));
  STRATA_ASSIGN(const WordList words, target.words());
  ServeAsker asker(target.client(), protocol);
  STRATA_TRY(warm_up(asker, words, options.load.seed));
  if (options.trace) {
    options.agent.seed = options.load.seed;
    options.agent.shared_prefix = options.load.shared_prefix;
    STRATA_TRY(fit_trace(target, options.context, options.agent));
    report.load.records = run_trace(asker, words, options.agent);
  } else {
    report.load = run_load(asker, words, options.load);
  }
  report.settings = settings_of(options, target, words.exact());
  add_limits(options, protocol, report.limits, report.settings);
  say_errors(report.load.records);
  STRATA_TRY(write(options, options.as_json ? serve_json(report) : serve_table(report)));
  STRATA_TRY(check_any_complete(report.load.records));
  return 0;
}

void add_target(CLI::App& command, TargetOptions& target) {
  auto* const url =
      command.add_option("url", target.url, "Address of a server, e.g. http://127.0.0.1:8080");
  auto* const model = command
                          .add_option("--model,-m", target.model,
                                      "Start strata serve with this model, and measure that")
                          ->excludes(url)
                          ->check(refuse_empty);
  command
      .add_option("--serve-args", target.serve_arguments,
                  "More arguments for it, e.g. \"--parallel 8\"")
      ->needs(model);
  command.add_option("--name", target.name,
                     "Name of the model in requests (default: the server's first)");
  command.add_option("--api-key-file", target.key_file, "File whose first line is the key to send")
      ->check(refuse_empty);
}

void add_requests(CLI::App& command, Options& options) {
  command.add_option("--endpoint", options.endpoint, "What is asked: chat or completions")
      ->check(CLI::IsMember({"chat", "completions"}))
      ->capture_default_str();
  command
      .add_option("--prompt,-p", options.prompt,
                  "Tokens of a prompt: N, uniform:LEAST:MOST or lognormal:MEDIAN:SIGMA[:MOST]")
      ->capture_default_str();
  command.add_option("--answer,-n", options.answer, "The most tokens of an answer, likewise")
      ->capture_default_str();
  command.add_flag("--ignore-eos", options.ignore_end, "Answers go on to their full length");
  command
      .add_option("--shared-prefix", options.load.shared_prefix,
                  "Tokens that all prompts begin with, before their own")
      ->check(CLI::Range(0, kMostTokens));
  command
      .add_option("--distinct", options.load.distinct,
                  "Different prompts, which then come again (default: all differ)")
      ->check(CLI::Range(1, kMostTokens));
  command.add_option("--body", options.more,
                     "JSON object of more members of every request, e.g. {\"top_p\": 0.9}");
  command.add_option("--timeout", options.timeout, "Seconds that an answer may take")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  command
      .add_option(
          "--seed", options.load.seed,
          "Of prompts, lengths and arrivals. The same seed asks the same again, which the server "
          "then has in its cache: for another run take another")
      ->capture_default_str();
}

void add_load(CLI::App& command, Options& options) {
  LoadOptions& load = options.load;
  auto* const users =
      command.add_option("--users,-u", load.users, "Users, each of whom asks again when answered")
          ->check(CLI::Range(1, 1 << 16))
          ->capture_default_str();
  command
      .add_option("--rate", load.rate,
                  "Requests per second instead, with random gaps between them (Poisson)")
      ->check(CLI::Range(1e-6, 1e6))
      ->excludes(users);
  command
      .add_option("--requests,-r", load.requests,
                  "Requests in all (default: 4 for each user, or 100 at a rate)")
      ->check(CLI::Range(1, 1 << 28));
  command.add_option("--seconds", load.seconds, "Seconds after which none is sent any more")
      ->check(CLI::Range(1e-3, 1e7));
  auto* const burst =
      command
          .add_option("--burst", load.burst,
                      "Prompts that come at once beside the users; the load ends with them")
          ->check(CLI::Range(1, 1 << 16));
  command.add_option("--burst-after", load.burst_after, "Seconds before it comes")
      ->needs(burst)
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  for (const auto& [name, lengths, help] :
       {std::tuple{"--burst-prompt", &options.burst_prompt, "Tokens of its prompts"},
        std::tuple{"--burst-answer", &options.burst_answer, "The most tokens of its answers"}})
    command.add_option(name, *lengths, fmt::format("{} (default: as the others)", help))
        ->needs(burst)
        ->check(refuse_empty);
}

void add_agents(CLI::App& command, Options& options) {
  TraceOptions& agent = options.agent;
  auto* const agents =
      command
          .add_option_function<std::int32_t>(
              "--agents",
              [&options](const std::int32_t& count) {
                options.trace = true;
                options.agent.agents = count;
              },
              "Agents instead of users: long conversations with side calls, a disconnect and a "
              "restart")
          ->check(CLI::Range(1, 1 << 12));
  const auto add = [&](const char* name, std::int32_t& value, std::int32_t least,
                       const char* help) {
    command.add_option(name, value, help)
        ->needs(agents)
        ->check(CLI::Range(least, kMostTokens))
        ->capture_default_str();
  };
  add("--agent-prompt", agent.prompt, 1, "Tokens that a conversation begins with");
  add("--turns", agent.turns, 1, "Turns of a conversation");
  add("--turn-tokens", agent.turn_tokens, 1, "Tokens that a turn adds besides its answer");
  command
      .add_option("--context", options.context,
                  "Tokens of the server's context (default: what the server says)")
      ->needs(agents)
      ->check(CLI::Range(1, kMostTokens));
}

}  // namespace

const CLI::App* add_bench_serve(CLI::App& bench, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      bench.add_subcommand("serve", "Measure how a server of the OpenAI protocol answers many");
  command->footer(
      "Reported, with percentiles: ttft, from a request to its first token; itl, from one token "
      "of\n"
      "an answer to the next; tpot, the time per token behind the first; e2e, to the end of the\n"
      "answer; tokens per second of all together; and the share of requests within --good, of "
      "those\nthat their client did not leave, and how many of them there were per second.");
  add_target(*command, options->target);
  add_load(*command, *options);
  add_agents(*command, *options);
  add_requests(*command, *options);
  command->add_option("--good", options->good,
                      "Limits in ms that make a request good, e.g. ttft:500,tpot:50,e2e:9000");
  command->add_flag("--json", options->as_json, "Print one JSON object");
  command->add_option("--output,-o", options->output, "Write to this new file instead")
      ->check(refuse_empty);
  set_action(*command, exit_code, [options, &bench]() -> Result<int> {
    for (const CLI::Option* const option : bench.get_options())
      if (option->count() > 0)
        return invalid_argument("{} is for strata bench; options of serve come after its name",
                                option->get_name());
    return run(*options);
  });
  return command;
}

}  // namespace strata::apps
