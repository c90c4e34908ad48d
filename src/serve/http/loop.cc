#include "serve/http/loop.h"

#include <fmt/chrono.h>

#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "serve/http/connection.h"

namespace strata::http {
namespace {

constexpr std::size_t kSpareBlocks = 4;
constexpr std::size_t kSpareBytes = 1 << 20;  // a block that grew beyond it is not kept

}  // namespace

// Takes the message if the loop is open. REQUIRES: mutex_ is held.
void Loop::enqueue(Message& message) {
  if (!open_) return;
  inbox_.push_back(std::move(message));
  if (std::exchange(woken_, true)) return;
  boost::asio::post(io_, [this] { drain(); });
}

void Loop::send(Message message) {
  const std::lock_guard lock(mutex_);
  enqueue(message);
}

std::unique_ptr<EventBlock> Loop::send(std::unique_ptr<EventBlock> block) {
  Message message(std::move(block));
  {
    const std::lock_guard lock(mutex_);
    enqueue(message);
    if (!spare_.empty()) {
      auto spare = std::move(spare_.back());
      spare_.pop_back();
      return spare;
    }
  }
  return std::make_unique<EventBlock>();
}

void Loop::run() {
  for (bool ended = false; !ended;) {
    try {
      io_.run();
      ended = true;
    } catch (const std::exception&) {
      // A handler ran out of memory; its connection ends by its own timeouts.
    }
  }
  std::vector<Message> left;
  const std::lock_guard lock(mutex_);
  open_ = false;
  left.swap(inbox_);
}

// Where memory runs out, or a callback throws, the connection ends: it must not lose a chunk.
template <typename Action>
void Loop::guarded(Connection& connection, Action action) {
  try {
    action();
  } catch (const std::exception&) {
    connection.drop();
  }
}

void Loop::drain() {
  {
    const std::lock_guard lock(mutex_);
    draining_.swap(inbox_);
    woken_ = false;
  }
  for (Message& message : draining_) apply(message);
  for (Connection* connection : dirty_) guarded(*connection, [&] { connection->flush(); });
  dirty_.clear();
  for (Message& message : draining_)
    if (auto* block = std::get_if<std::unique_ptr<EventBlock>>(&message))
      recycle(std::move(*block));
  draining_.clear();
}

void Loop::recycle(std::unique_ptr<EventBlock> block) {
  if (block->bytes.size() > kSpareBytes) return;
  block->bytes.clear();
  block->events.clear();
  const std::lock_guard lock(mutex_);
  if (spare_.size() < kSpareBlocks) spare_.push_back(std::move(block));
}

void Loop::apply(Message& message) {
  if (auto* block = std::get_if<std::unique_ptr<EventBlock>>(&message)) return apply(**block);
  Command& command = std::get<Command>(message);
  if (Connection* const connection = command.channel->connection)
    guarded(*connection, [&] {
      if (connection->apply(command)) dirty_.push_back(connection);
    });
}

void Loop::apply(EventBlock& block) {
  std::string_view bytes = block.bytes;
  for (const EventBlock::Event& event : block.events) {
    const std::string_view chunk = bytes.substr(0, event.bytes);
    bytes.remove_prefix(event.bytes);
    if (Connection* const connection = event.channel->connection)
      guarded(*connection, [&] {
        if (connection->append(chunk, event.last)) dirty_.push_back(connection);
      });
  }
}

std::string_view Loop::date() {
  const auto time = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  if (time != date_time_ || date_.empty()) {
    date_time_ = time;
    date_ = fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT",
                        fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
  }
  return date_;
}

}  // namespace strata::http
