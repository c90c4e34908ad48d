#include "bench_serve_target.h"

#include <boost/json.hpp>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/printable.h"
#include "bench_serve_request.h"
#include "say.h"
#include "serve_options.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

constexpr std::chrono::minutes kStartLimit{10};
constexpr std::chrono::milliseconds kPause{100};
constexpr std::string_view kAddressFollows = "Serving on ";

Result<json::value> parse_answer(const http::Client::Text& answer, std::string_view path) {
  boost::system::error_code error;
  json::value value = json::parse(answer.body, error);
  if (answer.status != 200 || error)
    return unsupported("{}: the server answered {}: {}{}", path, answer.status,
                       printable(answer.body, 200), refusal_hint(answer.status));
  return value;
}

// The member at `pointer`, or null.
const json::value* found_at(const json::value& value, std::string_view pointer) {
  boost::system::error_code error;
  return value.find_pointer(pointer, error);
}

std::optional<std::int32_t> count_at(const json::value& value, std::string_view pointer) {
  const json::value* found = found_at(value, pointer);
  boost::system::error_code error;
  if (found == nullptr || !found->is_number()) return std::nullopt;
  const auto count = found->to_number<std::int32_t>(error);
  return error || count < 1 ? std::nullopt : std::optional(count);
}

}  // namespace

Status ServeTarget::start(const TargetOptions& options) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return io_error("/proc/self/exe: {}", error.message());
  std::vector<std::string> arguments = {program.string(), "serve", options.model, "--port", "0"};
  std::istringstream more(options.serve_arguments);
  for (std::string word; more >> word;) arguments.push_back(word);
  STRATA_ASSIGN(child_, BackgroundChild::start(arguments));
  // The line is whole where what follows it is there.
  STRATA_ASSIGN(const std::string said, child_->wait_for("OpenAI base URL", kStartLimit));
  const std::size_t at = said.find(kAddressFollows) + kAddressFollows.size();
  url_ = said.substr(at, said.find_first_of(" \n", at) - at);
  return {};
}

Result<http::Client::Text> ServeTarget::get(std::string path) const {
  http::ClientRequest request;
  request.method = "GET";
  request.path = std::move(path);
  request.headers = headers_;
  return client_->ask(std::move(request));
}

// 503 means that it loads; servers without such a path are taken as ready.
Status ServeTarget::await_ready() const {
  const auto deadline = http::Client::Clock::now() + kStartLimit;
  while (true) {
    STRATA_ASSIGN(const auto answer, get("/health"));
    if (answer.status != 503) return {};
    if (http::Client::Clock::now() > deadline)
      return io_error("{} is not ready after {} min", url_, kStartLimit.count());
    std::this_thread::sleep_for(kPause);
  }
}

Status ServeTarget::choose_model(const std::string& name) {
  model_ = name;
  if (!model_.empty()) return {};
  STRATA_ASSIGN(const auto answer, get("/v1/models"));
  STRATA_ASSIGN(const json::value models, parse_answer(answer, "/v1/models"));
  const json::value* id = found_at(models, "/data/0/id");
  if (id == nullptr || !id->is_string())
    return not_found("{} names no model; say which with --name", url_);
  model_ = id->get_string();
  return {};
}

Result<ServeTarget> ServeTarget::open(const TargetOptions& options) {
  ServeTarget target;
  target.url_ = options.url;
  if (!options.model.empty()) STRATA_TRY(target.start(options));
  while (target.url_.ends_with('/')) target.url_.pop_back();
  if (target.url_.ends_with("/v1")) target.url_.resize(target.url_.size() - 3);
  if (!options.key_file.empty()) {
    STRATA_ASSIGN(const auto keys, read_keys(options.key_file));
    target.headers_.emplace_back("Authorization", "Bearer " + keys.front());
  }
  STRATA_ASSIGN(target.client_, http::Client::create(target.url_));
  STRATA_TRY(target.await_ready());
  STRATA_TRY(target.choose_model(options.name));
  return target;
}

Result<std::optional<std::int32_t>> ServeTarget::context() const {
  STRATA_ASSIGN(const auto answer, get("/v1/models"));
  STRATA_ASSIGN(const json::value models, parse_answer(answer, "/v1/models"));
  if (const json::value* list = found_at(models, "/data"); list != nullptr && list->is_array())
    for (const json::value& model : list->get_array()) {
      const json::value* id = found_at(model, "/id");
      const auto length = count_at(model, "/max_model_len");
      if (id != nullptr && *id == json::string(model_) && length) return length;
    }
  STRATA_ASSIGN(const auto properties, get("/props"));
  if (properties.status != 200) return std::optional<std::int32_t>();
  STRATA_ASSIGN(const json::value props, parse_answer(properties, "/props"));
  return count_at(props, "/default_generation_settings/n_ctx");
}

Result<std::optional<double>> ServeTarget::tokens_of(std::string_view text) const {
  http::ClientRequest request;
  request.path = "/tokenize";
  request.headers = headers_;
  request.body = json::serialize(json::object{{"model", model_}, {"content", text}});
  STRATA_ASSIGN(const auto answer, client_->ask(std::move(request)));
  if (answer.status != 200) return std::optional<double>();
  STRATA_ASSIGN(const json::value tokens, parse_answer(answer, "/tokenize"));
  const json::value* list = found_at(tokens, "/tokens");
  if (list == nullptr || !list->is_array()) return std::optional<double>();
  return std::optional(static_cast<double>(list->get_array().size()));
}

Result<WordList> ServeTarget::words() const {
  std::vector<double> counts;
  for (const std::string_view word : WordList::candidates()) {
    // Twice, as words stand behind others.
    STRATA_ASSIGN(const auto tokens, tokens_of(fmt::format("{} {}", word, word)));
    if (!tokens) {
      say("note: {} counts no tokens for others: a word is taken for one\n", url_);
      return WordList(std::vector<double>(WordList::candidates().size(), 1));
    }
    counts.push_back(*tokens / 2);
  }
  return WordList(counts);
}

}  // namespace strata::apps
