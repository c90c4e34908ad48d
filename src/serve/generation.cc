#include "serve/generation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "serve/output_constraint.h"
#include "text/sequence_breakers.h"

namespace strata::serve {
namespace {

namespace json = boost::json;

constexpr std::int32_t kMostTopLogprobs = 20;
constexpr std::size_t kMostBreakers = 64;
constexpr std::int64_t kMostPriority = 1 << 20;
constexpr std::int64_t kMostEchoed = 1 << 18;
constexpr std::size_t kMostSamplers = 16;
constexpr const char* kSamplers = "samplers";
constexpr const char* kRepetition = "repetition_penalty";
constexpr const char* kBreakers = "dry_sequence_breakers";
constexpr double kLargest = 1e18;

const char* prompt_field(const Generation& generation) {
  return generation.source == Generation::Source::kMessages ? "messages" : "prompt";
}

// `at_least`: the prompt is too long to count its tokens.
Refusal exceeds_context(const Generation& generation, std::size_t tokens, std::int32_t context,
                        bool at_least) {
  Refusal refusal(
      400, "exceed_context_size_error",
      fmt::format("the prompt has {}{} tokens, more than the context of {} holds beside "
                  "an answer; shorten it or start the server with a larger --context",
                  at_least ? "at least " : "", tokens, context),
      prompt_field(generation));
  refusal.code = "context_length_exceeded";
  refusal.details = {{"n_prompt_tokens", tokens}, {"n_ctx", context}};
  return refusal;
}

// Any of 64 bits, where a sign is one of them.
std::optional<Refusal> set_seed(std::string_view name, Fields& fields, std::uint64_t& seed) {
  using Signed = std::numeric_limits<std::int64_t>;
  const json::value* given = fields.value(name);
  if (given != nullptr && given->is_uint64()) {
    seed = given->get_uint64();
    return std::nullopt;
  }
  const double* const real = given != nullptr ? given->if_double() : nullptr;
  if (real != nullptr && std::abs(*real) >= 0x1p63)
    return fields.wrong(name, fmt::format("must lie between {} and {}", Signed::min(),
                                          std::numeric_limits<std::uint64_t>::max()));
  STRATA_ASSIGN(const auto value, fields.integer(name, Signed::min(), Signed::max()));
  // -1 asks for a seed of the server's, as elsewhere.
  if (value && *value != -1) seed = static_cast<std::uint64_t>(*value);
  return std::nullopt;
}

std::optional<Refusal> set_field(const SamplingField& field, Fields& fields,
                                 SamplingParams& params) {
  return std::visit(
      [&](auto member) -> std::optional<Refusal> {
        using T = std::remove_reference_t<decltype(params.*member)>;
        if constexpr (std::is_same_v<T, std::uint64_t>) {
          return set_seed(field.name, fields, params.*member);
        } else if constexpr (std::is_same_v<T, std::int32_t>) {
          auto value = fields.integer(field.name, static_cast<std::int64_t>(field.low),
                                      static_cast<std::int64_t>(field.high));
          if (!value.ok()) return value.status();
          if (*value) params.*member = static_cast<std::int32_t>(**value);
        } else {
          auto value = fields.number(field.name, std::max(field.low, -kLargest),
                                     std::min(field.high, kLargest));
          if (!value.ok()) return value.status();
          if (*value) params.*member = static_cast<float>(**value);
        }
        return std::nullopt;
      },
      field.member);
}

// vLLM's name of the penalty, which there has no window.
std::optional<Refusal> take_repetition(Fields& fields, SamplingParams& params) {
  STRATA_ASSIGN(const auto penalty, fields.number(kRepetition, 0.01, 100));
  if (!penalty) return std::nullopt;
  if (fields.value("repeat_penalty") != nullptr)
    return fields.wrong(kRepetition, "and `repeat_penalty` are one: give either");
  params.repeat_penalty = static_cast<float>(*penalty);
  if (fields.value("repeat_last_n") == nullptr) params.repeat_last_n = -1;
  return std::nullopt;
}

Answer<SamplingParams> sampling_of(const ServedModel& model, const Generation& generation) {
  SamplingParams params = model.sampling().params;
  params.seed = std::random_device{}();
  Fields fields(generation.sampling, generation.sampling_path);
  for (const SamplingField& field : sampling_fields())
    if (auto refusal = set_field(field, fields, params)) return *refusal;
  if (auto refusal = take_repetition(fields, params)) return *refusal;
  if (fields.value(kSamplers) != nullptr) {
    STRATA_ASSIGN(const auto order, fields.texts(kSamplers, kMostSamplers));
    params.order.clear();
    if (!order.empty()) {
      const std::string names = fmt::format("{}", fmt::join(order, ";"));
      STRATA_ASSIGN(params.order, fields.checked(kSamplers, parse_sampling_order(names)));
    }
  }
  STRATA_ASSIGN(auto breakers, fields.texts(kBreakers, kMostBreakers));
  if (fields.value(kBreakers) == nullptr) breakers = model.sampling().dry_breakers;
  if (params.dry_multiplier != 0) {
    STRATA_ASSIGN(
        params.dry_breakers,
        fields.checked(kBreakers, sequence_breakers(model.tokenizer(), std::move(breakers))));
  }
  params.logit_bias = generation.logit_bias;
  for (const auto& [token, bias] : params.logit_bias)
    if (token < 0 || token >= model.engine().vocabulary())
      return wrong_field("logit_bias", "names tokens that the model does not have");
  std::string_view wrong;
  if (const Status status = params.validate(model.engine().vocabulary(), &wrong); !status.ok()) {
    const bool by_order = fields.value(wrong) == nullptr && fields.value(kSamplers) != nullptr;
    return fields.wrong(by_order ? kSamplers : wrong, status);
  }
  return params;
}

ChatInputs inputs_of(const ServedModel& model, const Generation& generation) {
  ChatInputs inputs = generation.template_inputs;
  inputs["messages"] = generation.messages;
  if (generation.tool_choice.mode != ToolChoice::Mode::kNone && !generation.tools.empty())
    inputs["tools"] = generation.tool_list;
  inputs["add_generation_prompt"] = true;
  inputs["now"] = local_time();
  const std::string& switched_by = model.chat()->thinking().switched_by;
  if (generation.think && !switched_by.empty()) inputs[switched_by] = *generation.think;
  return inputs;
}

// `first`: of several prompts, which differ in nothing else; null: this is it.
Answer<Prepared> prepared_of(const ServedModel& model, Generation generation,
                             const Prepared* first) {
  STRATA_ASSIGN(Prompt prompt, prompt_of(model, generation));
  const std::int32_t context = model.engine().context();
  if (prompt.tokens.empty()) return wrong_field(prompt_field(generation), "is empty");
  if (prompt.tokens.size() + (generation.max_tokens == 0 ? 0 : 1) >
      static_cast<std::size_t>(context))
    return exceeds_context(generation, prompt.tokens.size(), context, false);
  Prepared out;
  Request& request = out.request;
  STRATA_ASSIGN(request.sampling, sampling_of(model, generation));
  out.warnings = std::move(generation.warnings);
  if (!generation.thinking_field.empty() && model.chat() != nullptr &&
      !model.chat()->supports_thinking())
    out.warnings.push_back(fmt::format("`{}`: the model's chat template knows no thinking",
                                       generation.thinking_field));
  if (first != nullptr) {
    request.constraint = first->request.constraint;
  } else {
    STRATA_ASSIGN(request.constraint,
                  constraint_of(model, generation, prompt.starts_thinking, out.warnings));
  }
  request.max_tokens = generation.max_tokens;
  request.choices = generation.choices;
  if (!generation.ignore_end) request.stop_tokens = model.end_tokens();
  request.priority = generation.priority;
  request.client = generation.client;
  request.cache_salt = generation.cache_salt;
  request.top_logprobs = std::min(generation.top_logprobs, kMostTopLogprobs);
  if (generation.report_prompt) out.reported_prompt = prompt.tokens;
  if (generation.prompt_logprobs) {
    for (std::size_t i = 0; i + 1 < prompt.tokens.size(); ++i)
      request.logit_positions.push_back(static_cast<Position>(i));
  }
  request.tokens = std::move(prompt.tokens);
  out.text.stops = std::move(generation.stops);
  out.text.starts_thinking = prompt.starts_thinking;
  if (generation.source == Generation::Source::kMessages) {
    out.text.tags = model.chat()->thinking().tags;
    if (generation.tool_choice.mode != ToolChoice::Mode::kNone && !generation.tools.empty()) {
      out.text.tool_style = model.chat()->tool_style();
      out.text.tools = std::move(generation.tools);
    }
  }
  return out;
}

}  // namespace

std::optional<Refusal> take_priority(Fields& fields, Generation& generation) {
  STRATA_ASSIGN(const auto priority, fields.integer("priority", -kMostPriority, kMostPriority));
  if (priority.value_or(0) < 0)
    fields.warn("priority", "counts as 0, which nobody goes before");
  else
    generation.priority = kInteractive - static_cast<std::int32_t>(priority.value_or(0));
  return std::nullopt;
}

void take_sampling(Fields& fields, const json::object& object, Generation& generation) {
  const auto take = [&](std::string_view name) {
    fields.accept({name});
    if (const json::value* value = object.if_contains(name)) generation.sampling[name] = *value;
  };
  for (const SamplingField& field : sampling_fields()) take(field.name);
  take(kSamplers);
  take(kRepetition);
  take(kBreakers);
}

Answer<std::vector<RenderedSpan>> render_chat(const ServedModel& model,
                                              const Generation& generation) {
  if (model.chat() == nullptr)
    return unsupported("the model {} has no chat template, so it takes completions only",
                       model.file().name);
  std::string refused;
  auto rendered = model.chat()->render(inputs_of(model, generation), &refused);
  if (!rendered.ok()) {
    if (generation.template_inputs.contains(refused)) refused = "chat_template_kwargs";
    return wrong_field(refused.empty() ? "messages" : refused, rendered.status());
  }
  return std::move(rendered).value();
}

Answer<Prompt> prompt_of(const ServedModel& model, const Generation& generation) {
  const std::int32_t context = model.engine().context();
  switch (generation.source) {
    case Generation::Source::kTokens: {
      for (const TokenId token : generation.tokens)
        if (token < 0 || token >= model.engine().vocabulary())
          return wrong_field("prompt", "contains tokens that the model does not have");
      return Prompt{generation.tokens, false};
    }
    case Generation::Source::kText: {
      const std::size_t least = model.prompts().least_tokens(generation.text.size());
      if (least > static_cast<std::size_t>(context))
        return exceeds_context(generation, least, context, true);
      STRATA_ASSIGN(Prompt prompt, model.prompts().text(generation.text, true));
      return prompt;
    }
    case Generation::Source::kMessages: break;
  }
  STRATA_ASSIGN(const auto rendered, render_chat(model, generation));
  std::size_t bytes = 0;
  for (const RenderedSpan& span : rendered) bytes += span.text.size();
  const std::size_t least = model.prompts().least_tokens(bytes);
  if (least > static_cast<std::size_t>(context))
    return exceeds_context(generation, least, context, true);
  STRATA_ASSIGN(Prompt prompt, model.prompts().chat(rendered));
  return prompt;
}

Answer<std::vector<Prepared>> prepare(const ServedModel& model,
                                      const std::vector<Generation>& generations) {
  std::vector<Prepared> out;
  std::int64_t echoed = 0;
  for (const Generation& generation : generations) {
    const Prepared* const first = out.empty() ? nullptr : &out.front();
    STRATA_ASSIGN(Prepared one, prepared_of(model, generation, first));
    const std::int64_t times = generation.prompt_logprobs ? generation.top_logprobs + 1 : 1;
    echoed += std::ssize(one.reported_prompt) * generation.choices * times;
    if (echoed > kMostEchoed)
      return wrong_field("echo",
                         fmt::format("asks for too much: the prompt's tokens times `n`, and "
                                     "times `logprobs` + 1 if given, may be {} at most",
                                     kMostEchoed));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace strata::serve
