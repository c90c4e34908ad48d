// The server's thread as others see it: an inbox of what they want done to connections.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "serve/http/exchange.h"

namespace strata::http {

class Channel;
class Connection;

struct Finish {};
struct Abandon {};  // nobody is left who could answer
struct Resume {
  std::function<void()> task;
};

struct Command {
  std::shared_ptr<Channel> channel;
  std::variant<Standby, HttpResponse, StreamStart, std::string, Finish, Abandon, Resume> what;
};

// What an EventBatch collects. `bytes` holds the chunks one after the other.
struct EventBlock {
  struct Event {
    std::shared_ptr<Channel> channel;
    std::size_t bytes = 0;
    bool last = false;
  };
  std::string bytes;
  std::vector<Event> events;
};

using Message = std::variant<Command, std::unique_ptr<EventBlock>>;

// Outlives the server while an Exchange is held, but then takes no messages.
class Loop {
 public:
  // Thread-safe. Messages take effect in order; many that come at once wake the thread once.
  void send(Message message);
  // As send(); returns an empty block whose memory has served before.
  std::unique_ptr<EventBlock> send(std::unique_ptr<EventBlock> block);

  // Calls handlers until none is left to wait for, then takes no more messages.
  void run();

  boost::asio::io_context& io() { return io_; }

  // For a response's Date header. REQUIRES: the loop's thread.
  std::string_view date();

 private:
  void enqueue(Message& message);
  void drain();
  void recycle(std::unique_ptr<EventBlock> block);
  void apply(Message& message);
  void apply(EventBlock& block);
  template <typename Action>
  void guarded(Connection& connection, Action action);

  boost::asio::io_context io_{1};
  std::mutex mutex_;
  std::vector<Message> inbox_;
  std::vector<std::unique_ptr<EventBlock>> spare_;
  bool woken_ = false;
  bool open_ = true;

  // The loop's thread only.
  std::vector<Message> draining_;
  std::vector<Connection*> dirty_;
  std::string date_;
  std::chrono::sys_seconds date_time_{};
};

// What an Exchange and its connection share.
class Channel {
 public:
  explicit Channel(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

  const std::shared_ptr<Loop>& loop() const { return loop_; }
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  bool lost() const { return closed() && lost_.load(std::memory_order_relaxed); }
  void on_disconnect(std::function<void()> callback);

  // The answer is complete, or its client is gone. REQUIRES: the loop's thread.
  void complete() { close(false); }
  void lose() { close(true); }

  Connection* connection = nullptr;  // the loop's thread only; null when closed

 private:
  void close(bool lost);

  const std::shared_ptr<Loop> loop_;
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  std::function<void()> callback_;
  std::atomic<bool> lost_{false};
};

}  // namespace strata::http
