#include "serve/service.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "serve/reserve.h"

namespace strata::serve {
namespace {

// One of several prompts that are answered together: its choices come behind those of the others.
struct Together {
  std::unique_ptr<AnswerWriter> writer;  // none where it has had the last word
  std::size_t left = 0;
  Usage usage;
};

class PartWriter final : public AnswerWriter {
 public:
  PartWriter(std::shared_ptr<Together> all, std::int32_t first)
      : all_(std::move(all)), first_(first) {}

  void prompt(std::int32_t choice, const std::vector<PromptToken>& tokens,
              ClientStream& client) override {
    if (all_->writer) all_->writer->prompt(first_ + choice, tokens, client);
  }
  void token(std::int32_t choice, const TokenEvent& event, ClientStream& client) override {
    if (all_->writer) all_->writer->token(first_ + choice, event, client);
  }
  void end_choice(std::int32_t choice, Ending ending, const AnswerDelta& rest,
                  const AnswerText& text, ClientStream& client) override {
    if (all_->writer) all_->writer->end_choice(first_ + choice, ending, rest, text, client);
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
    if (--all_->left > 0) return;
    if (const auto writer = std::move(all_->writer)) writer->end(sum, client);
  }
  void fail(const Refusal& refusal, ClientStream& client) override {
    if (const auto writer = std::move(all_->writer)) writer->fail(refusal, client);
  }

 private:
  const std::shared_ptr<Together> all_;
  const std::int32_t first_;
};

struct Work {
  AnswerForm form;
  ExchangePtr exchange;
  std::int64_t answers = 0;
  std::function<void(Generation&)> neutralize;

  // Once. Where they were dropped, they are read again.
  Answer<std::vector<Generation>> take() {
    {
      const std::lock_guard lock(mutex_);
      if (generations_) return *std::exchange(generations_, std::nullopt);
    }
    STRATA_ASSIGN(auto generations, form.read_again());
    for (Generation& each : generations) {
      each.arrival = arrival_;
      neutralize(each);
    }
    return generations;
  }
  void keep(std::vector<Generation> generations) {
    arrival_ = generations.front().arrival;
    generations_ = std::move(generations);
  }
  void drop() {
    const std::lock_guard lock(mutex_);
    generations_.reset();
  }

 private:
  std::mutex mutex_;
  std::optional<std::vector<Generation>> generations_;
  std::chrono::steady_clock::time_point arrival_;
};

std::int64_t answers_of(const std::vector<Generation>& generations) {
  std::int64_t answers = 0;
  for (const Generation& each : generations) answers += each.choices;
  return answers;
}

// Prompts of one request wait together, which these never could, however idle the server is.
std::optional<Refusal> check_tokens(const std::vector<Prepared>& prepared, std::int64_t most) {
  std::int64_t tokens = 0;
  for (const Prepared& each : prepared) tokens += std::ssize(each.request.tokens);
  if (prepared.size() == 1 || tokens <= most) return std::nullopt;
  return wrong_field("prompt", fmt::format("holds prompts of {} tokens together, and the server "
                                           "lets {} of a model wait, a share of its --memory",
                                           tokens, most));
}

// Everything that can be wrong with a request is found before any part of it is submitted.
std::optional<Refusal> submit(Metrics& metrics, const std::shared_ptr<ModelLease>& lease,
                              Work& work, std::int64_t most_tokens) {
  ServedModel& model = lease->model();
  STRATA_ASSIGN(const std::vector<Generation> generations, work.take());
  STRATA_ASSIGN(std::vector<Prepared> prepared, prepare(model, generations));
  STRATA_CHECK(check_tokens(prepared, most_tokens));
  const auto all = std::make_shared<Together>();
  all->writer = work.form.writer(model, std::move(prepared.front().warnings));
  all->left = prepared.size();
  std::vector<AnswerPart> parts;
  std::int32_t choices = 0;
  for (std::size_t i = 0; i < prepared.size(); ++i) {
    Prepared& one = prepared[i];
    AnswerSetup setup;
    setup.lease = lease;
    setup.engine = &model.engine();
    setup.tokenizer = &model.tokenizer();
    setup.text = std::move(one.text);
    setup.prompt = std::move(one.reported_prompt);
    setup.prompt_tokens = static_cast<std::int32_t>(one.request.tokens.size());
    setup.prompt_top = std::max(generations[i].top_logprobs, 0);
    setup.choices = one.request.choices;
    setup.exchange = work.exchange;
    if (i == 0) setup.stream = work.form.stream;
    setup.writer = std::make_unique<PartWriter>(all, choices);
    setup.metrics = &metrics;
    setup.arrival = generations[i].arrival;
    choices += setup.choices;
    parts.push_back({std::move(one.request), std::move(setup)});
  }
  return model.delivery().submit(std::move(parts));
}

// Tells the client, unless it is gone.
void refuse(Metrics& metrics, const Work& work, const Refusal& refusal) {
  metrics.requests_refused(work.answers);
  work.exchange->respond(work.form.refuse(refusal));
}

}  // namespace

// Every model has its metrics before it is asked.
Service::Service(ModelsOptions options, ServiceFacts facts)
    : facts_(std::move(facts)),
      most_waiting_(options.engine.queue),
      most_waiting_tokens_(Reserve(options.engine.memory).queued_tokens()),
      models_(std::move(options)) {
  for (const ModelStatus& status : models_.list()) metrics_.of(status.file.name);
}

void Service::neutralize(Generation& generation) const {
  const std::size_t lines = facts_.noise.apply(generation.messages);
  if (lines > 0)
    generation.warnings.push_back(fmt::format(
        "{} of the system prompt {} left out, as the server's --neutralize says",
        lines == 1 ? "1 line" : fmt::format("{} lines", lines), lines == 1 ? "was" : "were"));
}

void Service::answer(std::vector<Generation> generations, AnswerForm form, ExchangePtr exchange) {
  const auto known = models_.find(generations.front().model);
  Metrics& metrics = metrics_.of(known ? known->file.name : std::string());
  metrics.requests_arrived(answers_of(generations));
  for (Generation& generation : generations) neutralize(generation);
  const std::string name = generations.front().model;
  const auto keep_alive = generations.front().keep_alive;
  const auto work = std::make_shared<Work>();
  work->form = std::move(form);
  work->exchange = std::move(exchange);
  work->answers = answers_of(generations);
  if (generations.size() > most_waiting_)
    return refuse(metrics, *work,
                  wrong_field("prompt", fmt::format("holds {} prompts, and the server lets {} "
                                                    "requests of a model wait (--queue)",
                                                    generations.size(), most_waiting_)));
  work->neutralize = [this](Generation& generation) { neutralize(generation); };
  work->keep(std::move(generations));
  work->exchange->stand_by(
      {work->form.stream,
       work->form.refuse(Refusal(503, "overloaded_error", "the server is stopping"))});
  const auto gone = [&metrics, answers = work->answers] { metrics.requests_abandoned(answers); };
  const auto done = [&metrics, work, gone, most_tokens = most_waiting_tokens_](
                        Answer<std::shared_ptr<ModelLease>> leased) {
    if (work->exchange->closed()) return gone();
    if (!leased.ok()) return refuse(metrics, *work, leased.status());
    if (const auto refusal = submit(metrics, *leased, *work, most_tokens))
      refuse(metrics, *work, *refusal);
  };
  acquire(name, keep_alive, work->exchange, done, gone);
  work->drop();
}

void Service::acquire(const std::string& name, std::optional<KeepAlive> keep_alive,
                      const ExchangePtr& exchange, const Models::Done& done,
                      std::function<void()> gone) {
  wait_while_connected(exchange, done, std::move(gone),
                       [&](const Models::Done& then, Models::Ticket ticket) {
                         models_.acquire(name, keep_alive, then, ticket);
                       });
}

void Service::load(const std::string& name, const ExchangePtr& exchange, const Models::Done& done) {
  wait_while_connected(exchange, done, {}, [&](const Models::Done& then, Models::Ticket ticket) {
    models_.load(name, then, ticket);
  });
}

// What waited goes on on a thread for handlers: the one that loads has other models to load.
void Service::wait_while_connected(
    const ExchangePtr& exchange, const Models::Done& done, std::function<void()> gone,
    const std::function<void(const Models::Done&, Models::Ticket)>& ask) {
  const Models::Ticket ticket = models_.new_ticket();
  const auto open =
      std::make_shared<std::atomic<bool>>(true);  // neither `done` nor `gone` was called
  const auto give_up = [this, ticket, open, gone = std::move(gone)] {
    (void)models_.give_up(ticket);
    if (open->exchange(false) && gone) gone();
  };
  // Before it asks, as an answer on its way has a callback of its own.
  exchange->on_disconnect(give_up);
  const auto call = [open, done](const Answer<std::shared_ptr<ModelLease>>& leased) {
    if (open->exchange(false)) done(leased);
  };
  ask(
      [call, exchange,
       asking = std::this_thread::get_id()](Answer<std::shared_ptr<ModelLease>> leased) {
        if (std::this_thread::get_id() == asking) return call(leased);
        exchange->resume([call, leased = std::move(leased)] { call(leased); });
      },
      ticket);
  if (exchange->closed()) give_up();  // perhaps before it was waiting
}

std::uint64_t client_of(const http::HttpRequest& request, std::string_view user) {
  std::string client = fmt::format("{}\n{}", request.peer, user);
  for (const char* const name : {"Authorization", "x-api-key"})
    client += fmt::format("\n{}", request.header(name).value_or(std::string_view()));
  return std::hash<std::string>{}(client);
}

void Router::add(std::string_view method, std::string_view path, Handler handler) {
  routes_.push_back({std::string(method), std::string(path), std::move(handler)});
}

std::optional<std::string_view> Router::Route::rest_of(std::string_view wanted) const {
  if (!path.ends_with("/*"))
    return wanted == path ? std::optional(std::string_view()) : std::nullopt;
  const std::string_view above = std::string_view(path).substr(0, path.size() - 1);
  if (!wanted.starts_with(above) || wanted.size() == above.size()) return std::nullopt;
  return wanted.substr(above.size());
}

std::string Router::methods(std::string_view path) const {
  std::vector<std::string> out;
  for (const Route& route : routes_)
    if (route.rest_of(path)) out.push_back(route.method);
  if (std::ranges::find(out, "GET") != out.end()) out.emplace_back("HEAD");
  out.emplace_back("OPTIONS");
  return fmt::format("{}", fmt::join(out, ", "));
}

const Router::RefusalForm* Router::form_of(std::string_view path) const {
  const auto found = std::ranges::find_if(
      refusals_, [&](const auto& each) { return path.starts_with(each.first); });
  return found != refusals_.end() ? &found->second : nullptr;
}

std::optional<std::string> Router::error_body(const std::string& path,
                                              const std::string& message) const {
  const RefusalForm* const form = form_of(path);
  if (form == nullptr) return std::nullopt;
  return (*form)(Refusal(500, "server_error", message)).body;
}

void Router::handle(http::HttpRequest request, ExchangePtr exchange) const {
  if (holds_more_values(request.body, most_values_)) {
    const Refusal refusal = invalid_argument(
        "the body holds more than {} JSON values, for which the server's --memory leaves no room",
        most_values_);
    const RefusalForm* const form = form_of(request.path);
    return exchange->respond(
        form != nullptr
            ? (*form)(refusal)
            : http::error_response(400, refusal.type, "too_many_values", refusal.message));
  }
  bool known = false;
  for (const Route& route : routes_) {
    const auto rest = route.rest_of(request.path);
    if (!rest) continue;
    known = true;
    if (route.method != request.method) continue;
    std::string below(*rest);
    return route.handler({std::move(request), std::move(below), std::move(exchange)});
  }
  const Refusal refusal = known ? Refusal(405, "invalid_request_error",
                                          fmt::format("this path takes {}", methods(request.path)))
                                : Refusal(404, "not_found_error", "there is nothing at this path");
  const RefusalForm* const form = form_of(request.path);
  http::HttpResponse response =
      form != nullptr
          ? (*form)(refusal)
          : http::error_response(refusal.http_status, refusal.type,
                                 known ? "method_not_allowed" : "not_found", refusal.message);
  if (known) response.headers.emplace_back("Allow", methods(request.path));
  exchange->respond(std::move(response));
}

}  // namespace strata::serve
