#include "sampling_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/printable.h"
#include "numbers.h"
#include "text/sequence_breakers.h"

namespace strata::apps {
namespace {

using Origin = SamplingSettings::Origin;

constexpr std::string_view kFilePrefix = "general.sampling.";
constexpr std::string_view kOrder = "samplers";
constexpr std::string_view kBreakers = "dry_breakers";
constexpr std::string_view kNone = "none";

struct OtherName {
  std::string_view name;
  std::string_view other;
};
// Keys of files that are not called like their parameters.
constexpr OtherName kFileNames[] = {{"temperature", "temp"},
                                    {"repeat_penalty", "penalty_repeat"},
                                    {"repeat_last_n", "penalty_last_n"},
                                    {"presence_penalty", "penalty_present"},
                                    {"frequency_penalty", "penalty_freq"},
                                    {kOrder, "sequence"}};
// Further spellings of options that are common.
constexpr OtherName kOptionNames[] = {{"temperature", "--temp"},
                                      {"dynatemp_range", "--dynatemp"},
                                      {"dynatemp_exponent", "--dynatemp-exp"},
                                      {"typical_p", "--typical"},
                                      {"top_n_sigma", "--top-nsigma"},
                                      {"mirostat_tau", "--mirostat-ent"},
                                      {"mirostat_eta", "--mirostat-lr"}};

const SamplingField* field_named(std::string_view name) {
  const auto fields = sampling_fields();
  const auto found = std::ranges::find(fields, name, &SamplingField::name);
  return found == fields.end() ? nullptr : &*found;
}

std::string option_name(std::string_view parameter) {
  std::string option = "--" + std::string(parameter);
  std::ranges::replace(option, '_', '-');
  for (const auto& [name, other] : kOptionNames)
    if (name == parameter) option += "," + std::string(other);
  return option;
}

// \n, \t, \r and \\ for what a command line or a prompt hardly lets through.
std::string unescaped(std::string_view text) {
  constexpr std::string_view kLetters = "ntr\\", kMeanings = "\n\t\r\\";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t known =
        text[i] == '\\' && i + 1 < text.size() ? kLetters.find(text[i + 1]) : std::string::npos;
    out += known == std::string::npos ? text[i] : kMeanings[known];
    if (known != std::string::npos) ++i;
  }
  return out;
}

std::string_view origin_note(Origin origin) {
  switch (origin) {
    case Origin::kDefault: return "";
    case Origin::kFile: return "  (from the file)";
    case Origin::kOption: return "  (option)";
    case Origin::kChat: return "  (set here)";
  }
  return "";
}

// A value of the file as text that assign() takes.
Result<std::string> text_of(const Metadata& metadata, std::string_view key, std::string_view name) {
  if (name == kOrder || name == kBreakers) {
    STRATA_ASSIGN(const std::string_view text, metadata.get_string(key));
    return std::string(text);
  }
  STRATA_ASSIGN(const double value, metadata.get_float(key));
  return fmt::format("{}", static_cast<float>(value));
}

std::string parameter_of_key(std::string_view key) {
  key.remove_prefix(kFilePrefix.size());
  const auto found = std::ranges::find(kFileNames, key, &OtherName::other);
  return std::string(found == std::end(kFileNames) ? key : found->name);
}

Status add_bias(std::string_view item, SamplingParams& params) {
  TokenId token = 0;
  float bias = 0;
  const std::size_t middle = std::min(item.find('='), item.size());
  STRATA_TRY(parse_number(item.substr(0, middle), token));
  STRATA_TRY(parse_number(item.substr(std::min(middle + 1, item.size())), bias));
  params.logit_bias.emplace_back(token, bias);
  return {};
}

}  // namespace

Status SamplingSettings::assign(std::string_view name, std::string_view value, Origin origin) {
  if (const SamplingField* field = field_named(name)) {
    STRATA_TRY(std::visit([&](auto member) { return parse_number(value, params.*member); },
                          field->member));
  } else if (name == kOrder) {
    STRATA_ASSIGN(params.order, parse_sampling_order(value));
  } else if (name == kBreakers) {
    dry_breakers.clear();
    if (value != kNone) dry_breakers.push_back(unescaped(value));
  } else {
    return not_found("there is no parameter '{}'", printable(name, 32));
  }
  origins.insert_or_assign(std::string(name), origin);
  return {};
}

std::vector<std::string> SamplingSettings::take_from_file(const Metadata& metadata,
                                                          std::int32_t vocabulary) {
  std::vector<std::string> notes;
  const auto take = [&](std::string_view key, std::string_view name) -> Status {
    if (name == "seed") return invalid_argument("a seed is no recommendation");
    STRATA_ASSIGN(const std::string value, text_of(metadata, key, name));
    SamplingSettings changed = *this;
    STRATA_TRY(changed.assign(name, value, Origin::kFile));
    STRATA_TRY(changed.params.validate(vocabulary));
    *this = std::move(changed);
    return {};
  };
  for (const std::string_view key : metadata.keys()) {
    if (!key.starts_with(kFilePrefix)) continue;
    const std::string name = parameter_of_key(key);
    const auto known = origins.find(name);
    if (known != origins.end() && known->second == Origin::kOption) continue;
    const Status status = take(key, name);
    if (!status.ok())
      notes.push_back(fmt::format("the file's {} has no effect: {}", printable(key, 80),
                                  printable(status.message())));
  }
  return notes;
}

Result<SamplingParams> SamplingSettings::resolve(const Tokenizer& tokenizer) const {
  SamplingParams out = params;
  if (out.dry_multiplier != 0) {
    STRATA_ASSIGN(out.dry_breakers, sequence_breakers(tokenizer, dry_breakers));
  }
  STRATA_TRY(out.validate(tokenizer.vocabulary_size()));
  return out;
}

std::string SamplingSettings::describe() const {
  std::string out;
  const auto line = [&](std::string_view name, const auto& value) {
    const auto origin = origins.find(name);
    out += fmt::format("  {:<18} {}{}\n", name, value,
                       origin_note(origin == origins.end() ? Origin::kDefault : origin->second));
  };
  for (const SamplingField& field : sampling_fields())
    std::visit([&](auto member) { line(field.name, params.*member); }, field.member);
  line(kOrder, to_string(params.order));
  std::string breakers;
  for (const std::string& breaker : dry_breakers)
    breakers += (breakers.empty() ? "\"" : ", \"") + printable(breaker) + '"';
  line(kBreakers, breakers.empty() ? std::string(kNone) : breakers);
  return out;
}

namespace {

// As CLI11 reports errors.
void must_fit(const std::string& option, const Status& status) {
  if (!status.ok()) throw CLI::ValidationError(option, status.message());
}

void add_fields(CLI::App& command, SamplingSettings& settings) {
  for (const SamplingField& field : sampling_fields()) {
    const std::string_view name = field.name;
    CLI::Option* const option = command.add_option_function<std::string>(
        option_name(name),
        [&settings, name](const std::string& text) {
          must_fit(option_name(name), settings.assign(name, text, Origin::kOption));
        },
        std::string(field.help));
    option->type_name("NUMBER");
    if (name != "seed")
      std::visit(
          [&](auto member) { option->default_str(fmt::format("{}", settings.params.*member)); },
          field.member);
  }
}

}  // namespace

void add_sampling_options(CLI::App& command, SamplingSettings& settings) {
  settings.params.seed = std::random_device{}();
  add_fields(command, settings);
  command
      .add_option_function<std::string>(
          "--samplers",
          [&settings](const std::string& text) {
            must_fit("--samplers", settings.assign(kOrder, text, Origin::kOption));
          },
          "The samplers that run, in their order, between semicolons")
      ->default_str(to_string(settings.params.order));
  command
      .add_option_function<std::vector<std::string>>(
          "--dry-breaker,--dry-sequence-breaker",
          [&settings](const std::vector<std::string>& texts) {
            settings.dry_breakers.clear();
            for (const std::string& text : texts)
              if (text != kNone) settings.dry_breakers.push_back(unescaped(text));
            settings.origins.insert_or_assign(std::string(kBreakers), Origin::kOption);
          },
          "Text that repetitions do not reach over (repeatable; none: no such text)")
      ->allow_extra_args(false)
      ->default_str(R"(\n : " *)");
  command
      .add_flag_callback(
          "--greedy",
          [&settings] {
            for (const char* const name : {"temperature", "dynatemp_range"})
              (void)settings.assign(name, "0", Origin::kOption);
          },
          "The same as --temperature 0")
      ->excludes("--temperature")
      ->excludes("--dynatemp-range");
  command
      .add_option_function<std::vector<std::string>>(
          "--logit-bias",
          [&settings](const std::vector<std::string>& list) {
            for (const std::string& item : list)
              if (!add_bias(item, settings.params).ok())
                throw CLI::ValidationError("--logit-bias",
                                           "'" + item + "' is not of the form ID=VALUE");
          },
          "ID=VALUE, added to a token's logit; -inf forbids it (repeatable)")
      ->allow_extra_args(false);
}

}  // namespace strata::apps
