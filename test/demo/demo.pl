#!/usr/bin/perl
# demo.pl: the demo itself; `make demo` calls it. What must be ended later is written to file descriptor 3.
use strict;
use warnings;

use CdcBridge::Env qw(close_inherited poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Rows;
use CdcBridge::Shop qw(change_shop create_shop fill_shop);
use CdcBridge::Source;
use POSIX ();
use Time::HiRes qw(time);

$| = 1;
my $rows = $ENV{DEMO_ROWS} || 80_000;
my $watch = $ENV{DEMO_SECONDS} || 15;
my $terminal = -t STDOUT;

open(my $state, '>>&=', 3) or die "demo.pl is called by test/demo/run: $!\n";
$state->autoflush;
sub remember { print $state "@_\n"; }
sub say_step { print $terminal ? "\n\e[1m@_\e[0m\n" : "\n== @_\n"; }

# --- two servers
say_step("A private $ENV{CDC_SOURCE} server and a private PostgreSQL");
my $source = CdcBridge::Source->new(outlive => 1);
remember('process', $source->pid, $source->{dir});
remember('folder', $source->{dir});
my $postgres = CdcBridge::Postgres->new(outlive => 1);
remember('process', $postgres->{pid}, $postgres->dir);
remember('folder', $postgres->dir);
printf "%s on 127.0.0.1:%d, %s in %s\n", $source->query_value("select concat('$ENV{CDC_SOURCE} ', version())"), $source->port,
  $postgres->psql('select split_part(version(), $$ on $$, 1)'), $postgres->dir;

create_shop($source);
my $start = time();
fill_shop($source, $rows);
my @tables = CdcBridge::Rows->new(source => $source, schema => 'shop')->source_tables;
my $count = join(' + ', map { "(select count(*) from shop.$_)" } @tables);
printf "A shop of %d tables, %d rows, filled in %.1f s\n", scalar @tables, $source->query_value("select $count"), time() - $start;

# --- somebody keeps buying; for half an hour at most, should the demo be forgotten
sub start_writer
{
	my $pid = fork() // die "fork: $!\n";
	return remember('process', $pid, $source->{dir}) if $pid;
	POSIX::setsid();
	open(STDIN, '<', '/dev/null');
	$0 = "cdc_bridge demo: writer in $source->{dir}";
	open(STDOUT, '>', '/dev/null');
	open(STDERR, '>&', \*STDOUT);
	close_inherited();
	my $end = time() + 1800;
	my $dbh = $source->connect;
	while (time() < $end)
	{
		# paused while both sides are compared
		if (!-e "$source->{dir}/pause") { unlink("$source->{dir}/paused"); change_shop($dbh, $rows); }
		elsif (!-e "$source->{dir}/paused") { open(my $paused, '>', "$source->{dir}/paused"); }
		select(undef, undef, undef, 0.01);
	}
	POSIX::_exit(0);
}
start_writer();
print "A writer changes it all the time, about 100 transactions a second\n";

# --- the pipeline, as in the README
say_step('In PostgreSQL');
my $port = $source->port;
my @statements = (
	'CREATE EXTENSION cdc_bridge',
	"CREATE SERVER shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host '127.0.0.1', port '$port')",
	"CREATE USER MAPPING FOR CURRENT_USER SERVER shop OPTIONS (username 'repl', password '" . $source->password . q{')},
	q{SELECT cdc_start_pipeline('shop_in', source => 'shop', tables => '{shop.*}', target_schema => 'shop')});
for (@statements)
{
	print "$_;\n";
	$postgres->psql($_);
}
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres);

# Print a block of lines, over the last one at a terminal.
my $lines_before = 0;

sub redraw
{
	my ($text) = @_;
	print "\e[${lines_before}A\e[J" if $terminal && $lines_before;
	print "$text\n";
	$lines_before = () = "$text\n" =~ /\n/g;
}

say_step('Snapshot:  SELECT * FROM pg_stat_cdc_snapshot');
$start = time();
my $drawn = 0;
my $progress = q{select format('%-12s %-9s %s %6s %% %9s rows', source_table, state, bar, percent, rows_copied) from pg_stat_cdc_snapshot order by source_table};
my $done = poll_until(sub {
	my $text = $postgres->psql($progress);
	# at a terminal it moves, elsewhere a picture each second is enough
	if ($text ne '' && ($terminal || time() - $drawn > 1)) { redraw($text); $drawn = time(); }
	die $pipeline->status('last_error') . "\n" . $pipeline->describe if $pipeline->state eq 'failed';
	return $postgres->psql(q{select count(*) = 6 and bool_and(state = 'streaming') from pg_stat_cdc_table}) eq 't';
}, 600);
die "the snapshot did not end\n" . $pipeline->describe unless $done;
my $seconds = time() - $start;
redraw($postgres->psql($progress));
printf "%d rows in %.1f s, while the shop was open\n", $postgres->psql('select sum(rows_copied) from pg_stat_cdc_snapshot'), $seconds;

say_step("Stream, for $watch seconds:  SELECT * FROM pg_stat_cdc_pipeline");
$lines_before = 0;
$start = time();
while (time() - $start < $watch)
{
	my $status = $postgres->psql(q{select format('%s, lag %s, %s transactions and %s changes applied', state, coalesce(lag::text, '?'), transactions, changes) from pg_stat_cdc_pipeline});
	my ($there) = $source->query_rows('select ' . join(', ', map { "(select count(*) from shop.$_)" } @tables));
	my @here = split(/\|/, $postgres->psql('select ' . join(', ', map { "(select count(*) from shop.$_)" } @tables)));
	redraw("$status\n" . join("\n", map { sprintf('  %-12s %9d rows at the source %9d here', $tables[$_], $there->[$_], $here[$_]) } 0 .. $#tables));
	poll_until(sub { return 0 }, $terminal ? 0.5 : 3);
}

say_step('Are both sides equal?');
open(my $pause, '>', "$source->{dir}/pause") or die "pause: $!\n";
close($pause);
poll_until(sub { return -e "$source->{dir}/paused" }, 30) or die "the writer does not pause\n";
$pipeline->wait_for_catchup;
die "NO:\n$pipeline->{difference}" unless $pipeline->same_rows(@tables);
printf "Yes: all %d rows of %d tables, compared column by column while the writer pauses.\n", $source->query_value("select $count"), scalar @tables;
unlink("$source->{dir}/pause");

say_step('Go on');
print 'The shop is open again. Look around with', "\n\n    ", $postgres->bindir, '/psql -h ', $postgres->dir, ' -p ', $postgres->port, " -U postgres\n\n";
print '    ', $source->client, " --no-defaults -S $source->{dir}/s.sock -uroot shop\n\n";
print "and end it with: make demo-stop\n";
# what lives on is no longer ours to end
POSIX::_exit(0);
