-- pages.lua - what wrk sends in pages.py, and one line of JSON about how it went.
--
-- ... -- repeat FILE   the lines "PATH BODY" of FILE, again and again; each thread begins elsewhere
-- ... -- pair FILE N   reserve N new keys behind those of a line of FILE (known ones, written as the list's
--                      members), then confirm the pages that came. One connection a thread: calls take turns.

local threads = {}

function setup(thread)
	thread:set("id", #threads)
	table.insert(threads, thread)
end

local lines, at = {}, 0
pairs_done, short = 0, 0 -- read by done()

local function next_line()
	at = at % #lines + 1
	return lines[at]
end

local function post(path, body)
	return wrk.format("POST", path, { ["Content-Type"] = "application/json" }, body)
end

local tails, head, round, confirm = {}, "", 0, nil

local function reserve()
	local new = {}

	round = round + 1
	head = string.format("%02x%08x%06x", id, os.time(), round)
	for i, tail in ipairs(tails) do
		new[i] = tail .. (i < #tails and '",""],["' or '",""]')
	end
	return post("/0/reserve_and_allocate_page_indices",
		'{"keys":[' .. next_line() .. ',["' .. head .. table.concat(new, head) .. '],"namespace":"kv"}')
end

local function reserved(_, _, body)
	local done, n = {}, 0

	if confirm then
		confirm, pairs_done = nil, pairs_done + 1
		return
	end
	for page in body:gmatch("%[false, ?(%d+)%]") do
		n = n + 1
		done[n] = '["' .. head .. (tails[n] or "") .. '",' .. page .. "]"
	end
	if n ~= #tails then
		short = short + 1
	end
	confirm = post("/0/confirm_write",
		'{"written_keys_to_confirm":[' .. table.concat(done, ",") .. '],"pages_to_release":[],"namespace":"kv"}')
end

function init(args)
	for line in io.lines(args[2]) do
		table.insert(lines, args[1] == "repeat" and post(line:match("(%S+) (.*)")) or line)
	end
	at = math.floor(id * #lines / 4)
	if args[1] == "pair" then
		for i = 1, tonumber(args[3]) do
			tails[i] = string.format("%048x", i)
		end
		request = function() return confirm or reserve() end
		response = reserved
	else
		request = next_line
	end
end

function done(summary, latency)
	local all, few = 0, 0
	local e = summary.errors

	for _, thread in ipairs(threads) do
		all, few = all + thread:get("pairs_done"), few + thread:get("short")
	end
	io.write(string.format('\n{"requests": %d, "us": %d, "errors": %d, "pairs": %d, "short": %d, ',
		summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout, all, few))
	io.write(string.format('"p50_us": %d, "p99_us": %d}\n', latency:percentile(50), latency:percentile(99)))
end
