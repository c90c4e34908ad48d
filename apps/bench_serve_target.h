// The server that is measured: one that runs somewhere, or one started for it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench_serve_prompts.h"
#include "child_process.h"
#include "serve/http/client.h"

namespace strata::apps {

struct TargetOptions {
  std::string url;    // of a server that runs; else
  std::string model;  // what to start a server with,
  std::string serve_arguments;
  std::string name;  // of the model in requests; empty: the first that the server has
  std::string key_file;
};

class ServeTarget {
 public:
  // Returns when the server is ready for requests.
  static Result<ServeTarget> open(const TargetOptions& options);

  const std::string& url() const { return url_; }
  const std::string& model() const { return model_; }
  http::Client& client() const { return *client_; }
  const http::Fields& headers() const { return headers_; }

  // Tokens that a prompt and its answer may have; nothing where the server does not say.
  Result<std::optional<std::int32_t>> context() const;
  // Words counted by the server; where it counts none for others, as one token each.
  Result<WordList> words() const;

 private:
  Status start(const TargetOptions& options);
  Status await_ready() const;
  Status choose_model(const std::string& name);
  Result<http::Client::Text> get(std::string path) const;
  Result<std::optional<double>> tokens_of(std::string_view text) const;

  std::string url_;
  std::string model_;
  http::Fields headers_;
  std::unique_ptr<BackgroundChild> child_;
  std::unique_ptr<http::Client> client_;
};

}  // namespace strata::apps
