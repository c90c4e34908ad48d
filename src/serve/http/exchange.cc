#include "serve/http/exchange.h"

#include <utility>

#include "serve/http/loop.h"

namespace strata::http {

Exchange::Exchange(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}

Exchange::~Exchange() {
  if (!closed()) channel_->loop()->send(Command{channel_, Abandon()});
}

void Exchange::stand_by(Standby standby) {
  if (!closed()) channel_->loop()->send(Command{channel_, std::move(standby)});
}

void Exchange::resume(std::function<void()> task) {
  if (!closed()) channel_->loop()->send(Command{channel_, Resume{std::move(task)}});
}

void Exchange::respond(HttpResponse response) {
  if (!closed()) channel_->loop()->send(Command{channel_, std::move(response)});
}

void Exchange::start_stream(StreamStart start) {
  if (!closed()) channel_->loop()->send(Command{channel_, std::move(start)});
}

void Exchange::write(std::string chunk) {
  if (!closed()) channel_->loop()->send(Command{channel_, std::move(chunk)});
}

void Exchange::finish() {
  if (!closed()) channel_->loop()->send(Command{channel_, Finish()});
}

void Exchange::on_disconnect(std::function<void()> callback) {
  channel_->on_disconnect(std::move(callback));
}

bool Exchange::closed() const { return channel_->closed(); }
bool Exchange::lost() const { return channel_->lost(); }

EventBatch::EventBatch() : block_(std::make_unique<EventBlock>()) {}
EventBatch::~EventBatch() = default;

void EventBatch::add(const Exchange& exchange, std::string_view chunk, bool last) {
  if (exchange.closed()) return;
  block_->bytes.append(chunk);
  block_->events.push_back({exchange.channel_, chunk.size(), last});
}

void EventBatch::append(const Exchange& exchange, std::string_view chunk) {
  add(exchange, chunk, false);
}

void EventBatch::finish(const Exchange& exchange) { add(exchange, {}, true); }

void EventBatch::flush() {
  if (block_->events.empty()) return;
  const std::shared_ptr<Loop> loop = block_->events.front().channel->loop();
  block_ = loop->send(std::move(block_));
}

void Channel::on_disconnect(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed()) {
      callback_.swap(callback);
      return;
    }
    if (!lost_) return;
  }
  if (callback) callback();
}

void Channel::close(bool lost) {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    connection = nullptr;
    lost_.store(lost, std::memory_order_relaxed);
    closed_.store(true, std::memory_order_release);
    callback.swap(callback_);
  }
  if (lost && callback) callback();
}

}  // namespace strata::http
