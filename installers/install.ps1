<#
.SYNOPSIS
Install Foretype for this user on Windows. Run it twice: the second run changes nothing.

.DESCRIPTION
powershell -ExecutionPolicy Bypass -File installers\install.ps1 [-Demo] [-Offline DIR] [-Backend NAME]
    [-Python PATH] [-Prefix DIR] [-NoModel]

The private environment lies in %LOCALAPPDATA%\foretype\app (%FORETYPE_HOME%\app where that is set), the
command in its folder bin, which is added to the user's PATH. Works in Windows PowerShell 5.1 and later.
#>
[CmdletBinding()]
param(
    [switch]$Demo,
    [string]$Offline = '',
    [ValidateSet('auto', 'cpu', 'cuda', 'vulkan')][string]$Backend = 'auto',
    [string]$Python = '',
    [string]$Prefix = '',
    [switch]$NoModel
)
Set-StrictMode -Version 2.0
# 'Stop' would turn every line a program writes to stderr into an exception in 5.1; exit codes are read instead.
$ErrorActionPreference = 'Continue'
$Root = Split-Path -Parent $PSScriptRoot
$Constraints = Join-Path $Root 'installers\constraints.txt'

function Stop-With([string]$Text) {
    [Console]::Error.WriteLine("error: $Text")
    exit 1
}

function Get-Absolute([string]$Path) {
    $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Path)
}

function Test-Python([string[]]$Command) {
    # The real path of a usable Python, or nothing.
    $code = 'import sys, venv, ensurepip; print(sys.executable if (3, 11) <= sys.version_info[:2] <= (3, 14) else str())'
    $rest = @($Command | Select-Object -Skip 1) + @('-I', '-c', $code)
    try { $found = & $Command[0] @rest 2>$null } catch { return $null }
    if ($LASTEXITCODE -ne 0 -or -not $found) { return $null }
    return ([string](@($found)[-1])).Trim()
}

function Find-Python {
    if ($Python) {
        if (-not (Test-Path -LiteralPath $Python)) { Stop-With "$Python does not exist" }
        $found = Test-Python @((Get-Absolute $Python))
        if (-not $found) { Stop-With "$Python is no usable Python 3.11 to 3.14" }
        return $found
    }
    $tries = @(@('py', '-3.14'), @('py', '-3.13'), @('py', '-3.12'), @('py', '-3.11'), @('python3'), @('python'))
    foreach ($try in $tries) {
        $where = Get-Command $try[0] -CommandType Application -ErrorAction SilentlyContinue | Select-Object -First 1
        if (-not $where) { continue }
        $found = Test-Python (@($where.Path) + @($try | Select-Object -Skip 1))
        if ($found) { return $found }
    }
    Stop-With 'no Python 3.11 to 3.14 was found. Get one with:  winget install Python.Python.3.13'
}

function Find-Backend {
    # Backend and reason.
    if ($Backend -ne 'auto') { return @($Backend, 'you asked for it') }
    $device = ''
    if (Get-Command nvidia-smi -ErrorAction SilentlyContinue) {
        $names = @(& nvidia-smi '--query-gpu=name' '--format=csv,noheader' 2>$null)
        if ($LASTEXITCODE -eq 0 -and $names.Count -gt 0) { $device = [string]$names[0] }
    }
    if ($device -and (Get-Command nvcc -ErrorAction SilentlyContinue)) { return @('cuda', $device) }
    $shaders = Get-Command glslc -ErrorAction SilentlyContinue
    if ($env:VULKAN_SDK -and $shaders) { return @('vulkan', "Vulkan SDK in $env:VULKAN_SDK") }
    if ($device) { return @('cpu', "$device is here, but no CUDA compiler (nvcc); install the CUDA toolkit and run this again") }
    return @('cpu', 'no GPU toolkit was found')
}

function Invoke-Logged([string]$Label, [string[]]$Arguments) {
    # Run the environment's Python with its output in the log; a sign of life while it works. The exit code.
    $quoted = @($Arguments | ForEach-Object { '"' + ($_ -replace '"', '\"') + '"' }) -join ' '
    $out = Join-Path $Place 'step.out'
    $err = Join-Path $Place 'step.err'
    $began = Get-Date
    $process = Start-Process -FilePath $VenvPython -ArgumentList $quoted -WorkingDirectory $Place -NoNewWindow `
        -PassThru -RedirectStandardOutput $out -RedirectStandardError $err
    $null = $process.Handle  # without it ExitCode stays empty in 5.1
    while (-not $process.WaitForExit(5000)) {
        $passed = (Get-Date) - $began
        Write-Host ('  {0}: {1}:{2:00}' -f $Label, [int][Math]::Floor($passed.TotalMinutes), $passed.Seconds)
    }
    $process.WaitForExit()
    Add-Content -LiteralPath $Log -Value "--- $Label"
    Get-Content -LiteralPath $out, $err | Add-Content -LiteralPath $Log
    Remove-Item -LiteralPath $out, $err -ErrorAction SilentlyContinue
    return $process.ExitCode
}

function Invoke-Pip([string]$Label, [string[]]$Arguments) {
    $all = @('-I', '-m', 'pip', 'install', '--constraint', $Constraints)
    if ($Offline) { $all += @('--no-index', '--find-links', (Join-Path $Offline 'wheels')) }
    return Invoke-Logged $Label ($all + $Arguments)
}

function Show-Log {
    Get-Content -LiteralPath $Log -Tail 15 | ForEach-Object { [Console]::Error.WriteLine("  | $_") }
    [Console]::Error.WriteLine("The whole log: $Log")
}

function Install-Engine {
    # pip does not see CMAKE_ARGS when it looks for a wheel it built before: GPU builds have their own cache.
    $flags = @{ cuda = '-DGGML_CUDA=on'; vulkan = '-DGGML_VULKAN=on'; cpu = '' }
    $null = Invoke-Logged 'making room' @('-I', '-m', 'pip', 'uninstall', '-y', 'llama-cpp-python')
    foreach ($kind in @($script:Kind, 'cpu') | Select-Object -Unique) {
        $extra = @()
        $env:CMAKE_ARGS = (@($flags[$kind], $UserFlags) | Where-Object { $_ }) -join ' '
        if ($env:CMAKE_ARGS -and -not $Offline) { $extra = @('--cache-dir', (Join-Path $Place "pip-$kind")) }
        Write-Host "Installing the engine for $kind (a first build takes some minutes; log: $Log)"
        if ((Invoke-Pip "llama-cpp-python for $kind" ($extra + @($Engine))) -eq 0) {
            $code = 'import llama_cpp, sys; sys.exit(0 if sys.argv[1] == "cpu" or llama_cpp.llama_supports_gpu_offload() else 3)'
            if ((Invoke-Logged 'proof' @('-I', '-c', ($code -replace '"', "'"), $kind)) -eq 0) {
                $script:Kind = $kind
                return
            }
        }
        Show-Log
        if ($kind -ne 'cpu') { Write-Warning "THE BUILD FOR $kind FAILED. Falling back to the processor: completions will be slower." }
        $null = Invoke-Logged 'making room' @('-I', '-m', 'pip', 'uninstall', '-y', 'llama-cpp-python')
    }
    Stop-With ('llama-cpp-python could not be installed. A build from source needs the C++ tools:  ' +
        'winget install Microsoft.VisualStudio.2022.BuildTools  (workload: Desktop development with C++)')
}

function Install-All {
    Remove-Item -LiteralPath $Stamp -ErrorAction SilentlyContinue
    Set-Content -LiteralPath $Log -Value ''
    $made = Join-Path $Venv 'foretype-python'
    if (-not ((Test-Path -LiteralPath $made) -and ((Get-Content -LiteralPath $made) -eq $Base))) {
        Write-Host "Making a private environment in $Venv"
        if (Test-Path -LiteralPath $Venv) { Remove-Item -LiteralPath $Venv -Recurse -Force }
        & $Base -I -m venv $Venv
        if ($LASTEXITCODE -ne 0) { Stop-With 'the environment could not be made' }
        Set-Content -LiteralPath $made -Value $Base
    }
    $mark = Join-Path $Venv 'foretype-engine'
    if (-not ((Test-Path -LiteralPath $mark) -and ((Get-Content -LiteralPath $mark) -eq $Wanted))) {
        Remove-Item -LiteralPath $mark -ErrorAction SilentlyContinue
        Install-Engine
        Set-Content -LiteralPath $mark -Value $Wanted
    }
    if ((Invoke-Pip 'packages' @($Root)) -ne 0) {
        Show-Log
        Stop-With 'the packages could not be installed'
    }
    Set-Content -LiteralPath $Stamp -Value $Fingerprint
}

function Add-Launcher {
    $null = New-Item -ItemType Directory -Force -Path $Bin
    $text = "@`"$VenvPython`" -I -m daemon.cli.main %*"
    $old = if (Test-Path -LiteralPath $Launcher) { Get-Content -LiteralPath $Launcher } else { '' }
    if ($old -ne $text) { Set-Content -LiteralPath $Launcher -Value $text }
    $path = [string][Environment]::GetEnvironmentVariable('Path', 'User')
    if (@($path -split ';') -notcontains $Bin) {
        [Environment]::SetEnvironmentVariable('Path', ($path.TrimEnd(';') + ";$Bin").TrimStart(';'), 'User')
        Write-Host "$Bin was added to your PATH; open a new terminal to use foretype"
    }
}

function Get-Models {
    if ($Offline) {
        $models = Join-Path $Offline 'models'
        foreach ($file in @(Get-ChildItem -LiteralPath $models -Filter '*.gguf')) {
            & $VenvPython -I -m daemon.cli.main models pull $file.BaseName --from $models
            if ($LASTEXITCODE -ne 0) { Stop-With "$file cannot be used" }
        }
        return
    }
    $name = & $VenvPython -I -c 'from daemon import loading; print(loading.load().engine.model)'
    if ($LASTEXITCODE -ne 0) { Stop-With 'the settings cannot be read' }
    if ($name -match '[\\/]|\.gguf$') { return }
    & $VenvPython -I -m daemon.cli.main models pull $name
    if ($LASTEXITCODE -ne 0) { Stop-With 'the model could not be fetched; run this again to go on from where it stopped' }
}

function Show-Demo {
    $sample = Join-Path $Root 'tests\data\samples\orders.py'
    & $VenvPython -I -m daemon.cli.main up
    if ($LASTEXITCODE -ne 0) { Stop-With 'the daemon does not start; foretype doctor looks for the reason' }
    foreach ($try in 1..6) {
        $answer = (& $VenvPython -I -m daemon.cli.main complete "${sample}:10:5" --json) -join "`n"
        if ($answer -match '"text": "[^"]') {
            & $VenvPython -I -m daemon.cli.main complete "${sample}:10:5" --no-recall
            Write-Host 'The daemon goes on running for your editor. To end it: foretype down'
            return
        }
    }
    Stop-With 'no ghost text came; foretype doctor looks for the reason'
}

# Whatever was set for another Python must decide neither what is imported nor where pip installs.
foreach ($name in 'PYTHONPATH', 'PYTHONHOME', 'PYTHONSTARTUP', 'PIP_TARGET', 'PIP_PREFIX', 'PIP_ROOT') {
    Remove-Item -LiteralPath "Env:$name" -ErrorAction SilentlyContinue
}
$env:PIP_USER = '0'
$env:PIP_NO_INPUT = '1'
$env:PIP_DISABLE_PIP_VERSION_CHECK = '1'
$env:PYTHONNOUSERSITE = '1'
$UserFlags = [string]$env:CMAKE_ARGS
if ($Offline) {
    $Offline = Get-Absolute $Offline
    if (-not (Test-Path -Path (Join-Path $Offline 'wheels\llama_cpp_python-*.whl'))) {
        Stop-With "$Offline\wheels holds no llama_cpp_python wheel; make the folder with installers/bundle.sh"
    }
}
$Place = if ($Prefix) { Get-Absolute $Prefix }
    elseif ($env:FORETYPE_HOME) { Join-Path (Get-Absolute $env:FORETYPE_HOME) 'app' }
    else { Join-Path $env:LOCALAPPDATA 'foretype\app' }
$Venv = Join-Path $Place 'venv'
$VenvPython = Join-Path $Venv 'Scripts\python.exe'
$Stamp = Join-Path $Place 'installed'
$Log = Join-Path $Place 'install.log'
$Bin = Join-Path $Place 'bin'
$Launcher = Join-Path $Bin 'foretype.cmd'
$Base = Find-Python
$Kind, $Why = Find-Backend
$null = New-Item -ItemType Directory -Force -Path $Place
# From here on the current directory is one that no project writes to.
Set-Location -LiteralPath $Place
Write-Host "Python:  $Base"
Write-Host "Backend: $Kind ($Why)"
$pin = @(Get-Content -LiteralPath $Constraints | Where-Object { $_ -match '^llama_cpp_python==' })[0]
$Engine = $pin -replace '_', '-'
$Wanted = "$Engine $Kind $UserFlags".Trim()
$Fingerprint = & $Base -I -B (Join-Path $Root 'installers\fingerprint.py') $Root --word $Base --word $Wanted `
    pyproject.toml README.md LICENSE daemon indexer config installers/constraints.txt
if ($LASTEXITCODE -ne 0) { Stop-With 'the sources cannot be read' }
if ((Test-Path -LiteralPath $Stamp) -and ((Get-Content -LiteralPath $Stamp) -eq $Fingerprint)) {
    Write-Host "Foretype is up to date in $Place"
} else {
    Install-All
    Write-Host "Foretype is installed in $Place (backend $Kind)"
}
Add-Launcher
if (-not $NoModel) { Get-Models }
if ($Demo) { Show-Demo }
exit 0
