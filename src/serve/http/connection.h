// One client's connection. All of it runs on the loop's thread. A client that closes its sending
// half is taken to be gone: no HTTP client that still reads does so.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "serve/http/access.h"
#include "serve/http/loop.h"
#include "serve/http/request_parser.h"
#include "serve/http/server.h"
#include "serve/http/worker_pool.h"

namespace strata::http {

// The loop runs on one thread, so executors need no type erasure and sockets no strands.
using Executor = boost::asio::io_context::executor_type;
using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor>;
using Clock = std::chrono::steady_clock;
using Timer = boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, Executor>;
constexpr boost::asio::use_awaitable_t<Executor> kAwait;

// What the connections of a server share.
struct ServerState {
  ServerState(ServerOptions server_options, Handler server_handler);

  const ServerOptions options;
  const Handler handler;
  const AccessRules rules;
  const std::shared_ptr<Loop> loop;
  WorkerPool pool;
  WorkerPool questions;  // requests without a body, such as for the health, which cost little

  // The loop's thread only.
  std::unordered_set<std::shared_ptr<Connection>> open;
  std::function<void()> on_drained;
  std::vector<char> received;  // what one read brought, for all connections
  std::size_t refusing = 0;    // open connections that got no place
  bool stopping = false;       // requests that come are refused
  StopReport ended;            // since then

  // Calls on_drained where the server stops and no connection is busy.
  void note_if_drained() const;

  std::atomic<Bytes> buffered{0};  // bodies of unanswered requests, and of those still read
  std::atomic<std::size_t> connections{0};
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> disconnected{0};
  std::atomic<std::uint64_t> slow{0};
};

// A body's part of ServerState::buffered, which whoever works on the body holds.
class BodyCharge {
 public:
  explicit BodyCharge(std::atomic<Bytes>& all) : all_(all) {}
  ~BodyCharge() { all_ -= bytes_; }
  BodyCharge(const BodyCharge&) = delete;
  BodyCharge& operator=(const BodyCharge&) = delete;

  void set(Bytes bytes) { all_ += bytes - std::exchange(bytes_, bytes); }

 private:
  std::atomic<Bytes>& all_;
  Bytes bytes_ = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ServerState& server, Socket socket);

  // Serves requests until the client goes, or answers `refusal` and closes.
  void start();
  void start_refusing(const HttpResponse& refusal);

  // From the loop's inbox. True where flush() must follow once the inbox is empty.
  bool apply(Command& command);
  bool append(std::string_view chunk, bool last);
  void flush();

  // The server takes no more requests: an answer whose head is to come ends the connection.
  void retire();
  // Tells a client that waits that the server stops, and ends the connection.
  void cut();
  // Whether a request is being answered, or an answer on its way.
  bool busy() const;
  // Whether since `time` the client has sent nothing at all, or no more than a part of a head.
  bool idle_since(Clock::time_point time) const;
  bool begun_since(Clock::time_point time) const {
    return phase_ == Phase::kHead && phase_start_ <= time;
  }
  Clock::time_point phase_start() const { return phase_start_; }
  // Ends the connection at once.
  void drop();

 private:
  enum class Phase { kIdle, kHead, kBody, kHandling, kStreaming, kFlushing, kLingering, kClosed };

  boost::asio::awaitable<void, Executor> read_loop();
  boost::asio::awaitable<void, Executor> watch();
  void spawn_read_loop();
  void enter(Phase phase);
  Clock::time_point deadline() const;
  bool opens_by_itself() const;
  void rearm();
  void expire();

  // A request's way in.
  void receive(std::string_view bytes);
  void consume(std::string_view bytes);
  void on_head();
  void charge_body();
  bool charge_ahead();
  void dispatch();
  void resume();
  bool takes_bytes() const { return phase_ <= Phase::kBody && unsent() == 0; }

  // An answer's way out.
  void refuse(HttpResponse refusal, bool keep_alive);
  void put_in_form(HttpResponse& error) const;
  void answer(const HttpResponse& response);
  bool conclude(const HttpResponse& response);
  void open_stream(StreamStart start);
  void abandon();
  void end_answer();
  void append_head(int status, const Fields& fields, std::string_view content_type);
  bool mark_dirty();
  bool catch_up();
  void pump(bool retry = false);
  void on_sent();
  std::size_t unsent() const { return out_.size() - sent_; }
  void linger();

  ServerState& server_;
  Socket socket_;
  Timer timer_;
  std::string peer_;
  std::string local_;

  Phase phase_ = Phase::kIdle;
  Clock::time_point phase_start_ = Clock::now();
  Clock::time_point last_sent_;  // a byte, or the last time there was none to send
  bool consuming_ = false;
  bool dirty_ = false;
  bool blocked_ = false;  // the socket takes no more bytes
  bool crowded_out_ = false;

  std::string in_;    // received, not parsed yet
  BodyCharge ahead_;  // of that
  std::unique_ptr<RequestParser> parser_;
  bool checked_ = false;  // the request's head was
  std::shared_ptr<BodyCharge> charge_;

  // Of the request that is answered.
  std::shared_ptr<Channel> channel_;
  std::string path_;
  Fields cors_;
  bool is_head_ = false;
  bool is_http11_ = true;
  bool keep_open_ = true;
  bool chunked_ = false;
  StreamStart stream_;  // without its headers
  std::optional<Standby> standby_;

  std::string out_;  // from sent_ on it waits for the socket
  std::size_t sent_ = 0;
};

}  // namespace strata::http
