#include "serve/service.h"

#include <algorithm>

namespace strata::serve {
namespace {

// One of several prompts that are answered together: its choices come behind those of the others.
struct Together {
  std::unique_ptr<AnswerWriter> writer;
  std::size_t left = 0;
  Usage usage;
  bool failed = false;
};

class PartWriter final : public AnswerWriter {
 public:
  PartWriter(std::shared_ptr<Together> all, std::int32_t first)
      : all_(std::move(all)), first_(first) {}

  void prompt(const std::vector<PromptToken>& tokens, ClientStream& client) override {
    if (!all_->failed) all_->writer->prompt(tokens, client);
  }
  void token(std::int32_t choice, const TokenEvent& event, ClientStream& client) override {
    if (!all_->failed) all_->writer->token(first_ + choice, event, client);
  }
  void end_choice(std::int32_t choice, Ending ending, const AnswerDelta& rest,
                  const AnswerText& text, ClientStream& client) override {
    if (!all_->failed) all_->writer->end_choice(first_ + choice, ending, rest, text, client);
  }
  void end(const Usage& usage, ClientStream& client) override {
    Usage& sum = all_->usage;
    sum.prompt_tokens += usage.prompt_tokens;
    sum.cached_tokens += usage.cached_tokens;
    sum.completion_tokens += usage.completion_tokens;
    sum.first_difference = std::max(sum.first_difference, usage.first_difference);
    sum.queued_seconds = std::max(sum.queued_seconds, usage.queued_seconds);
    sum.prompt_seconds = std::max(sum.prompt_seconds, usage.prompt_seconds);
    sum.generation_seconds = std::max(sum.generation_seconds, usage.generation_seconds);
    sum.total_seconds = std::max(sum.total_seconds, usage.total_seconds);
    if (--all_->left == 0 && !all_->failed) all_->writer->end(sum, client);
  }
  void fail(const Refusal& refusal, ClientStream& client) override {
    if (std::exchange(all_->failed, true)) return;
    all_->writer->fail(refusal, client);
  }

 private:
  const std::shared_ptr<Together> all_;
  const std::int32_t first_;
};

struct Work {
  std::vector<Generation> generations;
  AnswerForm form;
  ExchangePtr exchange;
};

// Everything that can be wrong with a request is found before any part of it is submitted.
std::optional<Refusal> submit(Metrics& metrics, const std::shared_ptr<ModelLease>& lease,
                              Work& work) {
  ServedModel& model = lease->model();
  std::vector<Prepared> prepared;
  for (Generation& generation : work.generations) {
    auto one = prepare(model, generation);
    if (!one.ok()) return one.status();
    prepared.push_back(std::move(*one));
  }
  const auto all = std::make_shared<Together>();
  all->writer = work.form.writer(model);
  all->left = prepared.size();
  std::int32_t first_choice = 0;
  for (std::size_t i = 0; i < prepared.size(); ++i) {
    Prepared& part = prepared[i];
    AnswerSetup setup;
    setup.lease = lease;
    setup.engine = &model.engine();
    setup.tokenizer = &model.tokenizer();
    setup.text = std::move(part.text);
    setup.prompt = std::move(part.reported_prompt);
    setup.prompt_tokens = static_cast<std::int32_t>(part.request.tokens.size());
    setup.prompt_top = std::max(work.generations[i].top_logprobs, 0);
    setup.choices = part.request.choices;
    setup.exchange = work.exchange;
    if (i == 0) setup.stream = work.form.stream;
    setup.writer = std::make_unique<PartWriter>(all, first_choice);
    setup.metrics = &metrics;
    setup.arrival = work.generations[i].arrival;
    first_choice += setup.choices;
    if (auto refusal = model.delivery().submit(std::move(part.request), std::move(setup)))
      return i == 0 ? refusal : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

void Service::answer(std::vector<Generation> generations, AnswerForm form, ExchangePtr exchange) {
  metrics_.request_arrived();
  const std::string name = generations.front().model;
  const auto keep_alive = generations.front().keep_alive;
  const auto work =
      std::make_shared<Work>(Work{std::move(generations), std::move(form), std::move(exchange)});
  models_.acquire(name, keep_alive, [this, work](Answer<std::shared_ptr<ModelLease>> leased) {
    if (work->exchange->closed()) return;
    std::optional<Refusal> refusal;
    if (!leased.ok())
      refusal = leased.status();
    else
      refusal = submit(metrics_, *leased, *work);
    if (!refusal) return;
    metrics_.request_refused();
    http::HttpResponse response = work->form.refuse(*refusal);
    if (refusal->is_overload()) response.headers.emplace_back("Retry-After", "1");
    work->exchange->respond(std::move(response));
  });
}

void Router::add(std::string_view method, std::string_view path, Handler handler) {
  routes_.push_back({std::string(method), std::string(path), std::move(handler)});
}

void Router::handle(http::HttpRequest request, ExchangePtr exchange) const {
  bool known = false;
  for (const Route& route : routes_) {
    std::string_view pattern = route.path;
    std::string rest;
    if (pattern.ends_with("/*")) {
      pattern.remove_suffix(1);
      if (!request.path.starts_with(pattern) || request.path.size() == pattern.size()) continue;
      rest = request.path.substr(pattern.size());
    } else if (request.path != pattern) {
      continue;
    }
    known = true;
    if (route.method == request.method)
      return route.handler({std::move(request), std::move(rest), std::move(exchange)});
  }
  if (known)
    return exchange->respond(http::error_response(
        405, "invalid_request_error", "method_not_allowed", "this path takes another method"));
  exchange->respond(
      http::error_response(404, "not_found_error", "not_found", "there is nothing at this path"));
}

}  // namespace strata::serve
