-- Takes one of ARGV[1] requests per ARGV[2] milliseconds; returns milliseconds to wait, 0 where it was taken. A pause
-- lasts ARGV[4] milliseconds at most, whoever asked for more.
-- Redis' own clock decides, so that machines whose clocks differ still share one window; one that was set back holds
-- nobody up.
local t = redis.call('TIME')
local now = t[1] * 1000 + t[2] / 1000
local paused = redis.call('PTTL', KEYS[2])
if paused > 0 then
  local told = math.min(tonumber(redis.call('GET', KEYS[2])), tonumber(ARGV[4]))
  if paused > told + 1000 then redis.call('PEXPIRE', KEYS[2], told) end
  return math.min(paused, told)
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.3f', now - tonumber(ARGV[2])))
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('%.3f', now + 1000), '+inf')
local n = tonumber(ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= n then
  local oldest = redis.call('ZRANGE', KEYS[1], -n, -n, 'WITHSCORES')
  return math.max(1, math.min(math.ceil(tonumber(oldest[2]) + tonumber(ARGV[2]) - now), tonumber(ARGV[2])))
end
redis.call('ZADD', KEYS[1], string.format('%.3f', now), ARGV[3])
redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[2]) + 1000)
return 0
