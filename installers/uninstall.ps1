<#
.SYNOPSIS
Remove Foretype on Windows. Models and settings stay unless -Purge is given.

.DESCRIPTION
powershell -ExecutionPolicy Bypass -File installers\uninstall.ps1 [-Yes] [-Purge] [-Prefix DIR]
#>
[CmdletBinding()]
param([switch]$Yes, [switch]$Purge, [string]$Prefix = '')
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Continue'

function Get-Absolute([string]$Path) {
    $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Path)
}

Remove-Item -LiteralPath Env:PYTHONPATH -ErrorAction SilentlyContinue
$Place = if ($Prefix) { Get-Absolute $Prefix }
    elseif ($env:FORETYPE_HOME) { Join-Path (Get-Absolute $env:FORETYPE_HOME) 'app' }
    else { Join-Path $env:LOCALAPPDATA 'foretype\app' }
$VenvPython = Join-Path $Place 'venv\Scripts\python.exe'
if (-not (Test-Path -LiteralPath $Place)) {
    Write-Host "Foretype is not installed in $Place"
    exit 0
}
$folders = @()
if ($Purge) {
    # A models folder that FORETYPE_MODELS names may hold other things too and is never removed.
    $code = 'from daemon import paths; print(paths.cache_dir(), paths.config_dir(), paths.state_dir(), sep=chr(10))'
    $folders = @(& $VenvPython -I -B -c $code)
    if ($LASTEXITCODE -ne 0) {
        [Console]::Error.WriteLine('error: the installation does not work any more; run install.ps1 -NoModel once, then this again')
        exit 1
    }
}
Write-Host 'This removes:'
@($Place) + $folders | ForEach-Object { Write-Host "  $_" }
if (-not $Yes -and (Read-Host 'Go on? [y/N]') -notmatch '^[yY]') {
    Write-Host 'Nothing was removed.'
    exit 1
}
Set-Location -LiteralPath $env:TEMP
if (Test-Path -LiteralPath $VenvPython) { & $VenvPython -I -B -m daemon.cli.main down 2>&1 | Out-Null }
foreach ($part in 'venv', 'bin', 'installed', 'install.log', 'pip-cuda', 'pip-vulkan', 'pip-cpu') {
    $what = Join-Path $Place $part
    if (Test-Path -LiteralPath $what) { Remove-Item -LiteralPath $what -Recurse -Force }
}
foreach ($folder in $folders) {
    if (Test-Path -LiteralPath $folder) { Remove-Item -LiteralPath $folder -Recurse -Force }
}
if (@(Get-ChildItem -LiteralPath $Place -Force).Count -eq 0) { Remove-Item -LiteralPath $Place }
$bin = Join-Path $Place 'bin'
$path = [string][Environment]::GetEnvironmentVariable('Path', 'User')
$kept = @($path -split ';' | Where-Object { $_ -and $_ -ne $bin }) -join ';'
if ($kept -ne $path) { [Environment]::SetEnvironmentVariable('Path', $kept, 'User') }
Write-Host 'Foretype is gone.'
exit 0
