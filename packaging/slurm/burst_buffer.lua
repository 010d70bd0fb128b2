--[[
Slurm's burst_buffer/lua plugin for tierd: a job has its files on flash before it starts, and on the disks after it.

    #BB_LUA stage_in path=/scratch/alice/model deadline=10m
    #BB_LUA stage_out path="/scratch/alice/my results"

Slurm loads this file from the folder of slurm.conf. Written for Slurm 22.05 to 26.05 and Lua 5.1 to 5.4: before 23.02,
Slurm passes no uid to most functions; slurm_bb_test_data_in and slurm_bb_test_data_out exist since 24.05.
docs/slurm.md describes the directives, the installation, and what happens while tierd is down.

Settings are lines NAME=VALUE of the file tierd.environment in the same folder, or variables of slurmctld's environment:
    TIERD_TIERCTL            command of tierctl, with options; also through ssh: ssh tierd01 tierctl
    TIERD_SCONTROL           command of scontrol
    TIERD_SQUEUE             command of squeue, for the user and the comment of a job
    TIERD_SACCTMGR           command of sacctmgr, for comments of jobs that have ended (with slurmdbd)
    TIERD_PATIENCE_SECONDS   time for which tierd may give no answer
]]

-- The lines of tierd.environment beside this file.
local function settings_file()
    local found = {}
    local folder = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$")
    local file = folder and io.open(folder .. "/tierd.environment")
    for line in file and file:lines() or function() end do
        local name, value = line:match("^([A-Z_]+)=(.*)$")
        if name then
            found[name] = value
        end
    end
    if file then
        file:close()
    end
    return found
end

local SETTINGS = settings_file()

local function setting(name, default)
    return SETTINGS[name] or os.getenv(name) or default
end

local TIERCTL = setting("TIERD_TIERCTL", "/usr/bin/tierctl")
local SCONTROL = setting("TIERD_SCONTROL", "scontrol")
local SQUEUE = setting("TIERD_SQUEUE", "squeue")
local SACCTMGR = setting("TIERD_SACCTMGR", "sacctmgr")
local PATIENCE_SECONDS = tonumber(setting("TIERD_PATIENCE_SECONDS", "")) or 30
local DIRECTIVE = "BB_LUA"      -- Directive= of burst_buffer.conf
local STAGE_IN_SECONDS = 1800   -- deadlines of directives without one
local STAGE_OUT_SECONDS = 7200
local MAX_SECONDS = 43200       -- below StageInTimeout and StageOutTimeout of burst_buffer.conf (a day by default)
local MAX_STAGES = 64
local MAX_REQUEST_BYTES = 100000  -- the shell takes 128 KiB
local MAX_SCRIPT_BYTES = 4194304  -- Slurm's default limit of a job script

-- Directives ----------------------------------------------------------------------------------------------------------

local ESCAPES = { n = "\n", t = "\t", r = "\r", s = " ", ["\\"] = "\\", ['"'] = '"' }

-- The value that begins at a position, and the position after it; or nil and a sentence.
local function value_at(text, at)
    if text:sub(at, at) ~= '"' then
        local value = text:match("^[^%s\"\\]*", at)
        local after = text:sub(at + #value, at + #value)
        if after == '"' or after == "\\" then
            return nil, 'put a value with spaces, quotes or backslashes between quotes: path="/scratch/a b"'
        end
        return value, at + #value
    end
    local parts = {}
    at = at + 1
    while at <= #text do
        local letter = text:sub(at, at)
        if letter == '"' then
            return table.concat(parts), at + 1
        elseif letter == "\\" then
            local next_letter = text:sub(at + 1, at + 1)
            local hex = text:match("^x(%x%x)", at + 1)
            if hex and hex ~= "00" then
                parts[#parts + 1] = string.char(tonumber(hex, 16))
                at = at + 4
            elseif ESCAPES[next_letter] then
                parts[#parts + 1] = ESCAPES[next_letter]
                at = at + 2
            else
                return nil, 'a backslash between quotes begins one of \\\\ \\" \\n \\t \\r \\s \\xHH'
            end
        else
            parts[#parts + 1] = letter
            at = at + 1
        end
    end
    return nil, "a quote is not closed"
end

local UNITS = { [""] = 1, s = 1, m = 60, h = 3600 }
local SIZES = { [""] = 1, K = 1024, M = 1024 ^ 2, G = 1024 ^ 3, T = 1024 ^ 4 }

local function check_path(path)
    if path:sub(1, 1) ~= "/" then
        return nil, "path begins with /"
    end
    if #path > 4095 then
        return nil, "the path is too long"
    end
    for name in path:gmatch("[^/]+") do
        if name == "." or name == ".." then
            return nil, "path has no . and .. in it"
        end
    end
    return path
end

local function check_deadline(text)
    local number, unit = text:match("^(%d+)([smh]?)$")
    local seconds = number and tonumber(number) * UNITS[unit]
    if not seconds or seconds < 1 or seconds > MAX_SECONDS then
        return nil, string.format("deadline is a time up to %.0fh: 90s, 10m, 2h", MAX_SECONDS / 3600)
    end
    return seconds
end

local function check_files(text)
    local number = text:match("^%d+$") and tonumber(text)
    if not number or number < 1 or number > 100000 then
        return nil, "max_files is a number from 1 to 100000"
    end
    return number
end

local function check_size(text)
    local number, unit = text:match("^(%d+)([KMGT]?)$")
    local size = number and #number < 13 and tonumber(number) * SIZES[unit]
    if not size or size < 1 or size > 1024 ^ 5 then
        return nil, "max_size is a size up to 1024T: 500G"
    end
    return size
end

local function check_on_failure(text)
    if text ~= "start" and text ~= "hold" then
        return nil, "on_failure is start or hold"
    end
    return text
end

local CHECKS = {
    path = check_path, deadline = check_deadline, on_failure = check_on_failure, max_files = check_files,
    max_size = check_size,
}
local KNOWN = "path, deadline, max_files, max_size, on_failure"

-- One directive as a table, from the words after #BB_LUA; or nil and a sentence.
local function parse_directive(text)
    local what, at = text:match("^%s*(%S+)()")
    if what ~= "stage_in" and what ~= "stage_out" then
        return nil, "a directive is stage_in or stage_out" .. (what and ", not " .. what:sub(1, 40) or "")
    end
    local stage = { what = what }
    while true do
        at = text:match("^%s*()", at)
        if at > #text then
            break
        end
        local key, after = text:match("^([%a_]+)=()", at)
        if not key then
            return nil, "after " .. what .. ' stand words like path=/scratch/a, not "' .. text:sub(at, at + 40) .. '"'
        end
        if not CHECKS[key] then
            return nil, "unknown word " .. key:sub(1, 40) .. "; known: " .. KNOWN
        end
        if stage[key] then
            return nil, key .. " is given twice"
        end
        local value, next_at = value_at(text, after)
        if not value then
            return nil, next_at
        end
        if text:sub(next_at, next_at):find("%S") then
            return nil, "a space is missing after the value of " .. key
        end
        local checked, why = CHECKS[key](value)
        if not checked then
            return nil, why
        end
        stage[key] = checked
        at = next_at
    end
    if not stage.path then
        return nil, what .. " needs a path=…"
    end
    if what == "stage_out" and stage.on_failure then
        return nil, "on_failure is a word of stage_in: the job of a stage_out has ended already"
    end
    stage.deadline = stage.deadline or (what == "stage_in" and STAGE_IN_SECONDS or STAGE_OUT_SECONDS)
    return stage
end

-- The directives of a script, as tables; or nil and a sentence. As Slurm, it reads up to the first line that is no comment.
local function parse_script(text)
    local stages, number, bytes = {}, 0, 0
    for line in (text .. "\n"):gmatch("([^\n]*)\n") do
        number = number + 1
        line = line:gsub("\r$", "")
        if line ~= "" and line:sub(1, 1) ~= "#" then
            break
        end
        if line:sub(2, #DIRECTIVE + 1) == DIRECTIVE then
            local stage, why = nil, "write the whole directive in one line"
            if line:sub(-1) ~= "\\" then
                local rest = line:sub(#DIRECTIVE + 2)
                if rest == "" or rest:find("^%s") then
                    stage, why = parse_directive(rest)
                else
                    why = "a space is missing after #" .. DIRECTIVE
                end
            end
            if not stage then
                return nil, "line " .. number .. ": " .. why
            end
            stages[#stages + 1] = stage
            bytes = bytes + 6 * #stage.path + 200
        end
    end
    if #stages > MAX_STAGES or bytes > MAX_REQUEST_BYTES then
        return nil, "too many directives: " .. MAX_STAGES .. " at most; name a folder that has the files"
    end
    return stages
end

-- The text of a job script; or nil and a sentence.
local function read_script(path)
    local file, why = io.open(path, "rb")
    if not file then
        return nil, "the job script cannot be read: " .. tostring(why)
    end
    local text = file:read(MAX_SCRIPT_BYTES)
    file:close()
    return text or ""
end

-- The directives stage_in or stage_out of a script; none if it cannot be read.
local function stages_of(script, what)
    local text, why = read_script(script)
    local all
    if text then
        all, why = parse_script(text)
    end
    if not all then
        slurm.log_error("tierd: %s", why)
        return {}
    end
    local found = {}
    for _, stage in ipairs(all) do
        if stage.what == what then
            found[#found + 1] = stage
        end
    end
    return found
end

-- Requests to tierd ---------------------------------------------------------------------------------------------------

local function quoted(word)
    return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function json_string(text)
    return '"' .. text:gsub('[%c"\\\127]', function(letter)
        return string.format("\\u%04x", letter:byte())
    end) .. '"'
end

-- What a command prints; "" if it cannot be started.
local function output_of(command)
    local pipe = io.popen(command, "r")
    if not pipe then
        return ""
    end
    local text = pipe:read("*a")
    pipe:close()
    return text or ""
end

-- Whether tierd did what a request (JSON) asks, and its sentence.
local function ask_tierd(request)
    local said = output_of("printf %s " .. quoted(request) .. " | " .. TIERCTL .. " slurm 2>&1")
    local word, sentence = said:match("^(%a+) ?([^\n]*)")
    if word == "ok" then
        return true, sentence
    elseif word == "failed" then
        return false, sentence
    end
    return false, "tierctl does not work on the node of slurmctld: " .. said:sub(1, 200):gsub("%c", " ")
end

-- What squeue prints of a job. scontrol's record also has the name of the job, which may look like any other line of it.
local function squeue(job, format)
    return output_of(SQUEUE .. " --noheader --states=all --jobs=" .. job .. " " .. format .. " 2>/dev/null")
end

-- The uid, gid and name of the user of a job; nil if Slurm does not know it. They decide what the job may stage. Then how
-- scontrol and sacctmgr name it: 17 is an array's last task, but also the whole array; 17_3 is one task.
local function user_of(job_id)
    local number = string.format("%d", tonumber(job_id))
    local said = squeue(number, "--format='%A %U %G %u %i'")
    for id, uid, gid, user, job in said:gmatch("(%d+) (%d+) (%d+) (%S+) ([%d_+]+)") do
        if id == number then
            return tonumber(uid), tonumber(gid), user, job
        end
    end
    return nil, nil, nil, number
end

-- Writes a sentence at the end of the job's AdminComment, and leaves what the site wrote before it. slurmctld changes no
-- finished job; with accounting, slurmdbd does.
local function comment(job, sentence)
    local before = squeue(job, "--Format=admin_comment:65535"):gsub("%s+$", "")
    local at = before:find("tierd: ", 1, true)
    if at or before == "(null)" then
        before = before:sub(1, (at or 1) - 1)
    elseif before ~= "" then
        before = before .. " | "
    end
    local text = quoted("AdminComment=" .. before .. "tierd: " .. sentence)
    if output_of(SCONTROL .. " update JobId=" .. job .. " " .. text .. " 2>&1"):find("already finished", 1, true) then
        output_of(SACCTMGR .. " -i modify job where jobid=" .. job .. " set " .. text .. " 2>&1")
    end
end

-- Has tierd stage files, and waits for them. Returns whether all are there, and a sentence, which the job's comment gets.
local function stage(job_id, uid, gid, stages)
    local known_uid, known_gid, user, job = user_of(job_id)
    uid, gid = tonumber(uid) or known_uid, tonumber(gid) or known_gid
    if not uid or not gid then
        return false, "the user of the job is not known"
    end
    local parts, patience = {}, PATIENCE_SECONDS
    for _, each in ipairs(stages) do
        patience = math.min(patience, each.deadline)
        local limits = (each.max_files and string.format(', "max_files": %d', each.max_files) or "")
            .. (each.max_size and string.format(', "max_bytes": %.0f', each.max_size) or "")
        parts[#parts + 1] = string.format('{"direction": "%s", "path": %s, "deadline_seconds": %d%s}',
            each.what == "stage_in" and "promote" or "demote", json_string(each.path), each.deadline, limits)
    end
    local well, sentence = ask_tierd(string.format(
        '{"do": "stage", "job": "%d", "uid": %d, "gid": %d, "user": %s, "patience_seconds": %.0f, "stages": [%s]}',
        tonumber(job_id), uid, gid, json_string(user or ""), patience, table.concat(parts, ", ")))
    slurm.log_info("tierd: JobId=%s: %s", tostring(job_id), sentence)
    comment(job, sentence)
    return well, sentence
end

-- Functions that Slurm calls ------------------------------------------------------------------------------------------

-- At submission, in slurmctld itself: it only reads the script. An error refuses the job; sbatch prints the sentence.
function slurm_bb_job_process(job_script)
    local text, why = read_script(job_script)
    local stages
    if text then
        stages, why = parse_script(text)
    end
    if not stages then
        return slurm.ERROR, why
    end
    return slurm.SUCCESS
end

-- tierd has no pools that jobs reserve.
function slurm_bb_pools()
    return slurm.SUCCESS
end

function slurm_bb_setup()
    return slurm.SUCCESS
end

-- While the job is pending. An error holds the job, so it is one only where the user wants that.
function slurm_bb_data_in(job_id, job_script, uid, gid)
    local stages = stages_of(job_script, "stage_in")
    if #stages == 0 then
        return slurm.SUCCESS
    end
    local well, sentence = stage(job_id, uid, gid, stages)
    if not well then
        for _, each in ipairs(stages) do
            if each.on_failure == "hold" then
                return slurm.ERROR, "tierd: " .. sentence
            end
        end
    end
    return slurm.SUCCESS, "tierd: " .. sentence
end

function slurm_bb_test_data_in()
    return slurm.SUCCESS, ""
end

function slurm_bb_real_size()
    return slurm.SUCCESS
end

function slurm_bb_paths()
    return slurm.SUCCESS
end

function slurm_bb_pre_run()
    return slurm.SUCCESS
end

function slurm_bb_post_run()
    return slurm.SUCCESS
end

-- After the job. An error would keep the job in the state stage-out for ever; the comment says what was not moved.
function slurm_bb_data_out(job_id, job_script, uid, gid)
    local stages = stages_of(job_script, "stage_out")
    if #stages == 0 then
        return slurm.SUCCESS
    end
    local _, sentence = stage(job_id, uid, gid, stages)
    return slurm.SUCCESS, "tierd: " .. sentence
end

function slurm_bb_test_data_out()
    return slurm.SUCCESS, ""
end

-- After the job, and when it is cancelled: tierd drops the moves that it has not begun. In a session of its own, because
-- Slurm kills the scripts of a cancelled job, this one too. tierd notices after 30 s that nobody waits any more.
-- The uid keeps stagings of another cluster, where other users have jobs with the same numbers.
function slurm_bb_job_teardown(job_id, _, _, uid)
    local number = string.format("%d", tonumber(job_id))
    local known = tonumber(uid) and string.format("%d", tonumber(uid)) or "$(" .. SQUEUE .. " --noheader --states=all"
        .. " --jobs=" .. number .. " --format='%A %U' | sed -n 's/^" .. number .. " //p')"
    local request = [[printf '{"do": "teardown", "job": "%d", "uid": %d, "patience_seconds": 5}' ]] .. number
    os.execute("setsid sh -c " .. quoted("uid=" .. known .. "; " .. request .. " ${uid:--1} | " .. TIERCTL .. " slurm")
        .. " </dev/null >/dev/null 2>&1 &")
    return slurm.SUCCESS
end

-- scontrol show bbstat
function slurm_bb_get_status()
    local _, sentence = ask_tierd('{"do": "state", "patience_seconds": 0}')
    return slurm.SUCCESS, sentence .. "\n"
end
