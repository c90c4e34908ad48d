#include "hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"

namespace strata::apps {
namespace {

constexpr std::size_t kMostWordBytes = 64;
constexpr std::size_t kMostEdits = 2;  // of a word that is still close

// Optimal string alignment distance.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last, row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

// {} is the command, or run where there is none.
constexpr std::string_view kModel = "the model is the first argument: strata {} MODEL";
constexpr std::string_view kPrompt =
    "the prompt comes after the model: strata run MODEL \"PROMPT\"";
constexpr std::string_view kFetch = "fetch the model first: strata pull hf:ORGANIZATION/REPOSITORY";
constexpr std::string_view kPipe = "pipe the text in: strata run MODEL < FILE";
constexpr std::string_view kLayers = "leave it out: Strata computes on the CPU";
constexpr std::string_view kAttention = "leave it out: Strata has one way to compute attention";
constexpr std::string_view kCache = "keys and values are kept alike: --cache f16, q8_0 or f32";
constexpr std::string_view kRows = "the tokens of a step are --step-rows";
constexpr std::string_view kBoth =
    "a prompt and what is generated behind it are tests of their own: -p 16, and -n 4 -d 16";
constexpr std::string_view kMapping = "leave it out: Strata reads the file into memory";

// Options of llama.cpp's programs, and Strata's own ways.
constexpr std::pair<std::string_view, std::string_view> kHabits[] = {{"-m", kModel},
                                                                     {"--model", kModel},
                                                                     {"-p", kPrompt},
                                                                     {"--prompt", kPrompt},
                                                                     {"-hf", kFetch},
                                                                     {"--hf-repo", kFetch},
                                                                     {"-f", kPipe},
                                                                     {"--file", kPipe},
                                                                     {"-ngl", kLayers},
                                                                     {"--n-gpu-layers", kLayers},
                                                                     {"-fa", kAttention},
                                                                     {"--flash-attn", kAttention},
                                                                     {"-ctk", kCache},
                                                                     {"-ctv", kCache},
                                                                     {"--cache-type-k", kCache},
                                                                     {"--cache-type-v", kCache},
                                                                     {"-b", kRows},
                                                                     {"-ub", kRows},
                                                                     {"--batch-size", kRows},
                                                                     {"--ubatch-size", kRows},
                                                                     {"-pg", kBoth},
                                                                     {"-mmp", kMapping},
                                                                     {"--mmap", kMapping},
                                                                     {"--no-mmap", kMapping}};

const CLI::App* command_of(const CLI::App& app, std::span<const std::string> words) {
  if (words.empty()) return nullptr;
  for (const CLI::App* command : app.get_subcommands({}))
    if (command->get_name() == words.front()) return command;
  return nullptr;
}

}  // namespace

std::string_view closest(std::string_view word, std::span<const std::string> known) {
  word = word.substr(0, kMostWordBytes);
  std::string_view found;
  std::size_t fewest = std::min(kMostEdits + 1, word.size());
  for (const std::string& other : known)
    if (const std::size_t count = edits(word, other); count < fewest) {
      fewest = count;
      found = other;
    }
  return found;
}

std::string unknown_command(const CLI::App& app, std::span<const std::string> words) {
  if (words.empty() || words.front().starts_with('-') || command_of(app, words)) return {};
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  std::string advice = "strata --help lists all";
  if (words.front() == "chat")
    advice = "strata run MODEL without a prompt is a chat";
  else if (const std::string_view close = closest(words.front(), known); !close.empty())
    advice = fmt::format("did you mean strata {}? {}", close, advice);
  return fmt::format("there is no command '{}'; {}", printable(words.front(), kMostWordBytes),
                     advice);
}

std::string hint_for(const CLI::App& app, std::span<const std::string> words, bool gives_help) {
  const CLI::App* asked = &app;
  std::string name;
  for (auto rest = words; const CLI::App* command = command_of(*asked, rest);
       rest = rest.subspan(1)) {
    asked = command;
    name += (name.empty() ? "" : " ") + command->get_name();
  }
  const bool has_command = asked != &app;
  for (const std::string& word : words)
    for (const auto& [option, way] : kHabits)
      if (word == option && (word.starts_with("-h") || !gives_help) &&
          asked->get_option_no_throw(word) == nullptr)
        return fmt::format("{} is no option of strata{}{}; {}", word, has_command ? " " : "", name,
                           fmt::format(fmt::runtime(way), has_command ? name : "run"));
  for (std::size_t i = 1; i < words.size() && has_command && !gives_help; ++i)
    if ((words[i - 1] == "-t" || words[i - 1] == "--threads") &&
        words[i].find(',') != std::string::npos)
      return fmt::format("{} takes one number: call strata {} once for each", words[i - 1], name);
  return {};
}

}  // namespace strata::apps
