// What every protocol stands on: the models, the way to an answer, and the routes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/body.h"
#include "serve/generation.h"
#include "serve/http/server.h"
#include "serve/line_filter.h"
#include "serve/metrics.h"
#include "serve/models.h"

namespace strata::serve {

using ExchangePtr = std::shared_ptr<http::Exchange>;

// How a protocol answers.
struct AnswerForm {
  std::function<std::unique_ptr<AnswerWriter>(const ServedModel&,
                                              std::vector<std::string> warnings)>
      writer;
  std::function<http::HttpResponse(const Refusal&)> refuse;
  std::optional<http::StreamStart> stream;
  // Reads the generations once more, from the body: while they wait for their model they are not
  // kept, as they take many times the room that the server has for bodies.
  std::function<Answer<std::vector<Generation>>()> read_again;
};

// What the program that serves knows better.
struct ServiceFacts {
  std::string version;
  std::function<boost::json::object(const ModelManifest&, bool with_lists)> metadata_json;
  LineFilter noise = {};  // of system prompts
};

class Service {
 public:
  Service(ModelsOptions options, ServiceFacts facts);

  Models& models() { return models_; }
  ServerMetrics& metrics() { return metrics_; }
  const std::string& version() const { return facts_.version; }
  boost::json::object metadata_json(const ModelManifest& manifest, bool with_lists) const {
    return facts_.metadata_json(manifest, with_lists);
  }

  // Leaves out of the messages what LineFilter is for, and says so in the warnings.
  void neutralize(Generation& generation) const;

  // As those of Models, for a request: where its client goes before the model is there, the wait is
  // given up, and `gone` is called instead of `done`.
  void acquire(const std::string& name, std::optional<KeepAlive> keep_alive,
               const ExchangePtr& exchange, const Models::Done& done,
               std::function<void()> gone = {});
  void load(const std::string& name, const ExchangePtr& exchange, const Models::Done& done);

  // Loads the model if need be, and brings the answer on its way. Returns at once. Of several
  // generations, all by one model, the choices count on.
  void answer(std::vector<Generation> generations, AnswerForm form, ExchangePtr exchange);

 private:
  void wait_while_connected(const ExchangePtr& exchange, const Models::Done& done,
                            std::function<void()> gone,
                            const std::function<void(const Models::Done&, Models::Ticket)>& ask);

  const ServiceFacts facts_;
  const std::size_t most_waiting_;          // requests of a model
  const std::int64_t most_waiting_tokens_;  // of their prompts
  ServerMetrics metrics_;
  Models models_;
};

// Whom a request is of, for the turns that clients take: its user, its key and its machine.
std::uint64_t client_of(const http::HttpRequest& request, std::string_view user);

// Gives requests to the handlers of their paths. A path that ends in "/*" takes all below it.
class Router {
 public:
  struct Call {
    http::HttpRequest request;
    std::string rest;  // what "*" stands for
    ExchangePtr exchange;
  };
  using Handler = std::function<void(Call)>;

  void add(std::string_view method, std::string_view path, Handler handler);
  // The form of refusals at paths that begin so.
  void refuse_with(std::string prefix, std::function<http::HttpResponse(const Refusal&)> form) {
    refusals_.emplace_back(std::move(prefix), std::move(form));
  }
  // 400 for bodies of more JSON values than this.
  void limit_values(std::size_t most) { most_values_ = most; }
  // 404 for unknown paths, 405 where only the method is.
  void handle(http::HttpRequest request, ExchangePtr exchange) const;
  // For http::ServerOptions.
  std::optional<std::string> error_body(const std::string& path, const std::string& message) const;
  // Those that a path takes, with commas between them.
  std::string methods(std::string_view path) const;

 private:
  struct Route {
    std::string method, path;
    Handler handler;

    // What "*" stands for; nothing where the path is another.
    std::optional<std::string_view> rest_of(std::string_view wanted) const;
  };
  using RefusalForm = std::function<http::HttpResponse(const Refusal&)>;
  const RefusalForm* form_of(std::string_view path) const;

  std::vector<Route> routes_;
  std::vector<std::pair<std::string, RefusalForm>> refusals_;
  std::size_t most_values_ = kMostBodyValues;
};

// A dialect adds its routes.
void add_openai(Router& router, Service& service);
void add_ollama(Router& router, Service& service);
void add_native(Router& router, Service& service);
void add_registry(Router& router, Service& service);

}  // namespace strata::serve
