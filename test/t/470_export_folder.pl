# The folder of an outgoing pipeline in the hands of others: another pipeline of its name, files that are taken away, damaged or written to
# while the worker runs. A start that is refused changes nothing there; nothing is confirmed that is not in the files.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(new_folder poll_until slurp);
use CdcBridge::Export;
use CdcBridge::Postgres;
use Fcntl qw(:flock);
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres)->setup;
$postgres->psql("create schema shop; create table shop.t (id int primary key, name text)");
$export->start->wait_for_state('streaming');
$postgres->psql("insert into shop.t values (1, 'one')");
$export->wait_for_all;

sub append { my ($path, $text) = @_; open(my $out, '>>:raw', $path) or die "$path: $!"; print $out $text; close($out); return; }
sub listing { my ($folder) = @_; opendir(my $dir, $folder) or return 'none'; return join(' ', map { "$_:" . (-s "$folder/$_") } sort grep { !/^\./ } readdir($dir)); }

# ---- another pipeline of the same name, of another database, into the same directory

my ($newest) = ($export->files)[-1];
my @other = (database => 'other');
my $failed = sub {
	my ($what) = @_;
	$postgres->psql($what, @other);
	return poll_until(sub { return $postgres->psql("select count(*) from pg_stat_cdc_export where state = 'failed'", @other) eq '1'; });
};
$postgres->psql('create database other');
$postgres->psql("create extension cdc_bridge; create server files foreign data wrapper cdc_file options (directory '$export->{dir}');
	create table public.t (id int primary key)", @other);
ok($failed->("select cdc_start_pipeline('shop_out', sink => 'files', tables => '{public.*}')"), 'a pipeline of that name in another database fails');
is($postgres->psql('select last_error_sqlstate from pg_stat_cdc_export', @other), 'YC001', 'for good');
like($postgres->psql('select last_error from pg_stat_cdc_export', @other), qr/holds what another pipeline has written/, 'and is told why');
# the tail of a piece that the first one writes just now, and a file that it has just begun
$export->stop;
append($newest, '{"half"');
append($newest =~ s/1\.jsonl$/2.jsonl/r, '');
my $before = listing($export->folder);
ok($failed->("select cdc_stop_pipeline('shop_out'); select cdc_start_pipeline('shop_out')"), 'it fails again');
is(listing($export->folder), $before, 'it has cut off and removed nothing of the one whose folder that is');
$postgres->psql("select cdc_drop_pipeline('shop_out')", @other);
system('chown', '--reference', $export->folder, $export->files);
$export->start->wait_for_state('streaming');
$postgres->psql("insert into shop.t values (2, 'two')");
$export->wait_for_all->is_replayed('shop', 't', 'id', 'that one goes on');

# ---- two at once: the second one may not write, not even where nobody has written yet

open(my $folder, '<', $export->folder) or die "open: $!";
ok(!flock($folder, LOCK_EX | LOCK_NB), 'a worker has its folder for itself');
$export->stop;
ok(flock($folder, LOCK_EX | LOCK_NB), 'the worker that was stopped has left the folder') or diag($!);
$export->start->wait_for_status('last_error_sqlstate', qr/^55006$/);
like($export->status('last_error'), qr/^directory ".*" is in use$/, 'the folder is somebody else\'s: the worker does not write there');
close($folder);
$export->wait_for_state('streaming');

# ---- the newest file while the worker writes to it

my $write = 10;
for my $harm (
	[ 'lines are added to it',    sub { append($_[0], "{\"before\":null}\n"); }, 'streaming' ],
	[ 'it is emptied',            sub { truncate($_[0], 0) or die $!; },           'failed' ],
	[ 'it is taken away',         sub { rename($_[0], "$export->{dir}/kept") or die $!; }, 'failed' ],
	[ 'another one takes its place', sub { system('cp', '-p', $_[0], "$_[0].new"); rename("$_[0].new", $_[0]) or die $!; }, 'streaming' ])
{
	my ($name, $do, $state) = @$harm;
	my $file = ($export->files)[-1];
	my $kept = slurp($file);
	$do->($file);
	$write++;
	$postgres->psql("insert into shop.t values ($write, '$name')");
	$export->wait_for_status('state', qr/^$state$/)->wait_for_status('last_error_sqlstate', qr/^\w{5}$/) if $state eq 'failed';
	if ($state eq 'failed')
	{
		is($export->status('last_error_sqlstate'), 'YC001', "$name: what is lost is told");
		my $folder = listing($export->folder);
		$export->start->wait_for_status('state', qr/^failed$/);
		is(listing($export->folder), $folder, "$name: nothing is made in its place");
		unlink($file);
		append($file, $kept);
		system('chown', '--reference', $export->folder, $file);
		$export->start;
	}
	$export->wait_for_state('streaming')->wait_for_all;
	$export->is_replayed('shop', 't', 'id', "$name: nothing is missing");
}

# ---- the folder is gone: the second start does not begin anew either

$export->stop;
rename($export->folder, "$export->{dir}/away") or die "rename: $!";
for my $time ('first', 'second')
{
	$export->start->wait_for_state('failed');
	like($export->status('last_error'), qr/is empty/, "the folder is gone: told at the $time start");
	ok(!-e $export->folder, 'and no other one is made');
	$export->stop;
}
rename("$export->{dir}/away", $export->folder) or die "rename: $!";

# ---- an end record is damaged, and the slot has nothing of what stands before it any more

$newest = ($export->files)[-1];
my $sound = slurp($newest);
(my $damaged = $sound) =~ s/"crc32c":"(.)([^"]*"\}\}\n)\z/'"crc32c":"' . ($1 eq '0' ? '1' : '0') . $2/e or die 'no end record';
open(my $out, '+<:raw', $newest) or die "$newest: $!";
print $out $damaged;
close($out);
$export->start->wait_for_state('failed');
is($export->status('last_error_sqlstate'), 'YC001', 'a damaged end record: told');
is(slurp($newest), $damaged, 'and what stands before it is not cut off');
open($out, '+<:raw', $newest) or die "$newest: $!";
print $out $sound;
close($out);
$export->start->wait_for_state('streaming')->wait_for_all;
$export->is_replayed('shop', 't', 'id', 'mended, it goes on');

# ---- no more room for the file: it is tried again

my $pid = $export->status('pid');
system('prlimit', '--pid', $pid, '--fsize=65536') == 0 or die "prlimit\n";
$postgres->psql("insert into shop.t select i, repeat('x', 1000) from generate_series(1000, 1200) i");
$export->wait_for_all->is_replayed('shop', 't', 'id', 'a file that may not grow: tried again, nothing is missing');
like($postgres->log_text, qr/could not write file .*: File too large/, 'after an error that says so');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();
