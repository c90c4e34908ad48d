// Strata's own paths, by requests to a server on a reference model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>
#include <thread>

#include "serve/http/client.h"
#include "serve/service.h"
#include "tests/shared_data.h"

namespace strata::serve {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

class NativePaths : public ::testing::Test {
 protected:
  void SetUp() override {
    STRATA_REQUIRE_REFERENCE("llama");
    ModelsOptions options;
    options.files.push_back(
        {.name = "llama", .path = strata::testing::reference_path("llama") + ".gguf"});
    options.engine.memory = kGiB;  // sanitizers take some of it
    options.engine.context = 256;
    options.engine.threads = 1;
    options.keep_alive = kForever;
    options.sampling = [this](const Metadata&, std::int32_t) {
      may_load_.get_future().wait();
      return SamplingDefaults();
    };
    service_ = std::make_unique<Service>(
        std::move(options),
        ServiceFacts{"test", [](const ModelManifest&, bool) { return json::object(); },
                     LineFilter("noise")});
    add_native(router_, *service_);
    add_openai(router_, *service_);
    http::ServerOptions http;
    http.port = 0;
    auto server = http::Server::start(
        http, [this](http::HttpRequest request, std::shared_ptr<http::Exchange> exchange) {
          router_.handle(std::move(request), std::move(exchange));
        });
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(*server);
  }
  void TearDown() override {
    if (server_) server_->stop(std::chrono::seconds(1));
  }

  void let_load() { may_load_.set_value(); }

  int status_of(const std::string& path) { return ask("GET", path).status; }
  json::value get(const std::string& path) { return json::parse(ask("GET", path).body); }
  json::object post(const std::string& path, const std::string& body, int status = 200) {
    const auto answer = ask("POST", path, body);
    EXPECT_EQ(answer.status, status) << answer.body;
    return json::parse(answer.body).as_object();
  }

 private:
  http::Client::Text ask(const std::string& method, const std::string& path,
                         const std::string& body = {}) {
    http::ClientRequest request;
    request.method = method;
    request.path = path;
    request.body = body;
    auto client = http::Client::create(fmt::format("http://127.0.0.1:{}", server_->port()));
    EXPECT_TRUE(client.ok());
    auto answer = (*client)->ask(std::move(request));
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    return answer.ok() ? *answer : http::Client::Text();
  }

  std::promise<void> may_load_;
  Router router_;

 protected:
  std::unique_ptr<Service> service_;
  std::unique_ptr<http::Server> server_;
};

TEST_F(NativePaths, HealthIs503UntilTheModelIsThere) {
  EXPECT_EQ(status_of("/health"), 200);  // nothing is to be loaded
  std::promise<void> loaded;
  service_->models().acquire("llama", std::nullopt, [&](const auto&) { loaded.set_value(); });
  EXPECT_EQ(status_of("/health"), 503);
  EXPECT_EQ(status_of("/health"), 503);
  let_load();
  loaded.get_future().wait();
  EXPECT_EQ(status_of("/health"), 200);
}

TEST_F(NativePaths, SlotsAreTheLastThatEnded) {
  let_load();
  json::array prompts;
  for (int i = 0; i < 40; ++i) prompts.emplace_back(fmt::format("prompt {}", i));
  const json::object body{{"prompt", prompts}, {"max_tokens", 1}};
  EXPECT_EQ(post("/v1/completions", json::serialize(body)).at("choices").as_array().size(), 40u);
  const json::value slots = get("/slots");
  EXPECT_EQ(slots.as_array().size(), 16u);
  for (const json::value& slot : slots.as_array()) EXPECT_EQ(slot.at("state"), "done");
}

TEST_F(NativePaths, MetricsCountEachChoiceOfEachPrompt) {
  let_load();
  post("/v1/completions",
       R"({"prompt": ["a", "b c"], "n": 3, "max_tokens": 4, "ignore_eos": true})");
  post("/v1/completions", R"({"prompt": ["a", "b"], "n": 2, "temperature": -1})", 400);
  const Metrics::Counts counts = service_->metrics().counts();
  EXPECT_EQ(counts.arrived, 10u);
  EXPECT_EQ(counts.done, 6u);
  EXPECT_EQ(counts.refused, 4u);
  EXPECT_EQ(counts.completion_tokens, 24u);
  const std::string text = service_->metrics().text();
  EXPECT_THAT(text, HasSubstr("vllm:e2e_request_latency_seconds_count{model_name=\"llama\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("vllm:time_to_first_token_seconds_count{model_name=\"llama\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("vllm:inter_token_latency_seconds_count{model_name=\"llama\"} 18\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_prompt_tokens_count{model_name=\"llama\"} 2\n"));
}

TEST_F(NativePaths, TemplatesAreAppliedAsToAChat) {
  let_load();
  const auto prompt = [&](const std::string& content) {
    return post("/apply-template", R"({"messages": [{"role": "system", "content": ")" + content +
                                       R"("}, {"role": "user", "content": "x"}]})");
  };
  const json::object plain = prompt("be");
  EXPECT_FALSE(plain.contains("warnings"));
  const json::object one = prompt("noise 1\\nbe");
  EXPECT_EQ(one.at("prompt"), plain.at("prompt"));
  EXPECT_THAT(json::serialize(one.at("warnings")),
              HasSubstr("1 line of the system prompt was left out"));
  EXPECT_THAT(json::serialize(prompt("noise 1\\nbe\\nnoise 2").at("warnings")),
              HasSubstr("2 lines of the system prompt were left out"));
  const json::object odd =
      post("/apply-template",
           R"({"messages": [{"role": "user", "content": "x", "mood": 1}], "glow": 1})");
  EXPECT_EQ(odd.at("warnings").as_array().size(), 2u);
  EXPECT_EQ(post("/apply-template", "{}", 400).at("error").at("param"), "messages");
  EXPECT_EQ(post("/tokenize", R"({"content": "a", "glow": 1})").at("warnings").as_array().size(),
            1u);
}

TEST_F(NativePaths, ErrorsHaveACodeThatIsATextOrNull) {
  let_load();
  const auto code = [&](const std::string& body, int status) {
    return post("/v1/completions", body, status).at("error").at("code");
  };
  EXPECT_EQ(code("{", 400), nullptr);
  EXPECT_EQ(code(R"({"prompt": 5})", 400), nullptr);
  EXPECT_EQ(code(R"({"prompt": "x", "model": "absent"})", 404), "model_not_found");
  const json::object body{{"prompt", std::string(20'000, 'x')}};
  EXPECT_EQ(code(json::serialize(body), 400), "context_length_exceeded");
}

}  // namespace
}  // namespace strata::serve
