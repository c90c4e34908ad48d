// One request of the OpenAI protocol, streamed, as its client sees it.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/client.h"

namespace strata::apps {

// What to say besides where a server refuses a request with this status; may be empty.
std::string_view refusal_hint(int http_status);

struct Message {
  std::string role;
  std::string text;
};
using Messages = std::vector<Message>;

// Takes server-sent events apart as their bytes come.
class EventReader {
 public:
  // Calls `take` with the data of every event that is whole. False where one has no end.
  bool feed(std::string_view bytes, const std::function<void(std::string_view)>& take);

 private:
  std::string line_;
};

struct ServeRecord {
  std::string group;  // of which it is one, e.g. "steady"
  double start = 0;   // s since the load began, as are the others
  double end = 0;
  std::vector<double> events;  // when text came
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t answer_tokens = 0;
  std::string odd_usage;  // what the server counted, where that cannot be true
  std::string text;
  std::string error;   // its kind; empty where there is none
  std::string detail;  // what the server said of it
  bool left = false;   // its client went before the end, as it was meant to

  bool complete() const { return error.empty() && !left; }
};

struct Protocol {
  bool chat = true;  // else plain completions of the messages' joined text
  std::string model;
  http::Fields headers;
  bool ignore_end = false;
  boost::json::object more;  // members of every request
  std::chrono::milliseconds timeout{std::chrono::minutes(10)};
};

// Of one thread, the client's.
class ServeAsker {
 public:
  using Clock = http::Client::Clock;
  using Id = http::Client::Id;
  using Take = std::function<void(ServeRecord)>;
  // Text has come.
  using OnText = std::function<void(const ServeRecord&)>;

  ServeAsker(http::Client& client, Protocol protocol)
      : client_(client), protocol_(std::move(protocol)) {}

  http::Client& client() { return client_; }
  // Times count from here.
  void begin() { start_ = Clock::now(); }
  Clock::time_point started() const { return start_; }
  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  Id ask(std::string group, const Messages& messages, std::int32_t answer_tokens, Take done,
         OnText on_text = {});
  // Closes the connection; `done` gets what came, at once. An answer that is whole, or wrong, ends
  // likewise, whatever else the server would send.
  void leave(Id id);
  void leave_all();

 private:
  struct Request;

  std::string body_of(const Messages& messages, std::int32_t answer_tokens) const;
  void on_body(Request& request, int status, std::string_view bytes);
  static bool read_more(Request& request, std::string_view data);
  void on_event(Request& request, std::string_view data) const;
  void on_end(Request& request, int status, http::Failure failure);
  std::shared_ptr<Request> take(Id id);
  void hand_over(Request& request) const;

  http::Client& client_;
  const Protocol protocol_;
  Clock::time_point start_ = Clock::now();
  std::map<Id, std::shared_ptr<Request>> open_;
};

}  // namespace strata::apps
