#!/usr/bin/perl
# snapshot: one table into an empty one with a primary key. The pipeline, from its start to "streaming", against the mariadb client
# into COPY, COPY from a ready file, pgloader, and INSERT .. SELECT by mysql_fdw.
use strict;
use warnings;

use Bench qw(checksum_source checksum_target run_shell);
use Time::HiRes qw(time);

my $bench = Bench->new('snapshot');
my $tools = $ENV{BENCH_TOOLS} // '';
# mysql_fdw opens libmysqlclient.so by its name
$ENV{LD_LIBRARY_PATH} = join(':', "$tools/lib", $ENV{LD_LIBRARY_PATH} // ()) if -d "$tools/lib";
$bench->start_servers;
delete $ENV{LD_LIBRARY_PATH};
my ($source, $postgres, $session, $pipeline) = ($bench->source, $bench->postgres, $bench->session, $bench->pipeline);
my $rows = $bench->rows;
$bench->create_table('item', $rows);
$source->query_value('select count(*), max(note) from bench.item');    # once into memory
my $expected = checksum_source($source, 'bench.item');
my $columns = join(', ', Bench::columns());
my $psql = "PGOPTIONS='-c synchronous_commit=off' PGTZ=UTC '" . $postgres->bindir . "/psql' -XAtq -v ON_ERROR_STOP=1 -h '" . $postgres->host . "' -p " . $postgres->port . ' -U postgres -d postgres';
my $file = $bench->folder . '/item';
my %found;

# the mirror's own definition, for all
pipeline_copy();
delete $bench->{series}{pipeline};
$postgres->psql("create table benchop.model (like bench.item including all); copy bench.item to '$file'");

my @ways = (pipeline => \&pipeline_copy, pipe => \&pipe_copy, file => \&file_copy);
if ($source->is_mysql) { $bench->skip('pgloader', 'it cannot log in to MySQL 9'); }
elsif (!-x "$tools/pgloader/usr/bin/pgloader") { $bench->skip('pgloader', 'the package could not be had'); }
else { push @ways, pgloader => \&pgloader_copy; }
if (prepare_mysql_fdw()) { push @ways, mysql_fdw => \&mysql_fdw_copy; }

for my $round ($bench->rounds) { $bench->take_turns($round, '', @ways); }
$bench->ratio('snapshot against mariadb | psql copy', 'pipeline', 'pipe', 0.9);
$bench->ratio('snapshot against COPY from a file', 'pipeline', 'file');
$bench->ratio('snapshot against pgloader', 'pipeline', 'pgloader', 3);
$bench->ratio('snapshot against mysql_fdw', 'pipeline', 'mysql_fdw', 1.7);
$bench->check_equal('rows copied', source => $expected, %found);
$bench->finish;

# An empty table like the mirror's, nothing of it in memory that is not on disk.
sub fresh_table
{
	my ($name) = @_;
	$postgres->psql("set client_min_messages = warning; drop table if exists benchop.$name; create table benchop.$name (like benchop.model including all)");
	$session->ask('checkpoint');
	return "benchop.$name";
}

sub note_found
{
	my ($way, $table) = @_;
	$found{$way} //= checksum_target($postgres, $table);
	$postgres->psql("drop table $table") if $way ne 'pipeline';
	return;
}

sub pipeline_copy
{
	if ($pipeline->{created})
	{
		$pipeline->stop->drop;
		$pipeline->drop_target;
	}
	$session->ask('checkpoint');
	my $start = time();
	$session->ask($pipeline->start_statement);
	my $query = "select count(*) > 0 and bool_and(state in ('streaming', 'stopped')) from pg_stat_cdc_table where pipeline = 'bench'";
	until ($session->ask($query) eq 't')
	{
		die "the snapshot does not end\n" . $pipeline->describe if time() > $start + ($ENV{BENCH_TIMEOUT} || 3600);
		select(undef, undef, undef, 0.005);
	}
	my $seconds = time() - $start;
	$pipeline->{created} = 1;
	note_found('pipeline', 'bench.item');
	return ($rows, $seconds);
}

# The client escapes as COPY reads (tab, newline, backslash), but NULL is the word NULL; there is no such text among the rows.
sub pipe_copy
{
	my $table = fresh_table('pipe');
	my $client = $source->client;
	my (undef, $seconds) = run_shell("$client --no-defaults --socket='$source->{dir}/s.sock' --user=root --default-character-set=utf8mb4 "
		  . "--init-command=\"set time_zone = '+00:00'\" --quick --batch --skip-column-names -e 'select $columns from bench.item' "
		  . "| $psql -c \"copy $table from stdin (null 'NULL')\"");
	note_found('pipe', $table);
	return ($rows, $seconds);
}

sub file_copy
{
	my $table = fresh_table('file');
	my $start = time();
	$session->ask("copy $table from '$file'");
	my $seconds = time() - $start;
	note_found('file', $table);
	return ($rows, $seconds);
}

sub pgloader_copy
{
	my $table = fresh_table('item');
	my $folder = $bench->folder;
	my ($user, $password) = ($source->user, $source->password);
	open(my $out, '>', "$folder/load") or die "$folder/load: $!\n";
	# the port is for the name of the socket
	print $out "load database from mysql://$user:$password\@127.0.0.1:" . $source->port . "/bench into postgresql://postgres\@unix:" . $postgres->host . ':' . $postgres->port
	  . "/postgres?benchop.item\n"
	  . "with data only, create no tables, no truncate, disable triggers, workers = 2, concurrency = 1\n"
	  . "set PostgreSQL PARAMETERS timezone to 'UTC', synchronous_commit to 'off'\n"
	  . "including only table names matching 'item'\nalter schema 'bench' rename to 'benchop';\n";
	close($out);
	my ($output, $seconds) = eval {
		run_shell("HOME=$folder LD_LIBRARY_PATH=\$(echo $tools/pgloader/usr/lib/*-linux-gnu) $tools/pgloader/usr/bin/pgloader --root-dir $folder/pgloader $folder/load");
	};
	if (!defined $seconds) { $bench->skip('pgloader', "it failed: $@"); return; }
	my $count = $postgres->psql("select count(*) from $table");
	if ($count != $rows) { $bench->skip('pgloader', "it loaded $count rows:\n$output"); return; }
	note_found('pgloader', $table);
	return ($rows, $seconds);
}

sub prepare_mysql_fdw
{
	my ($status, $out, $err) = $postgres->try_psql('create extension mysql_fdw');
	if ($status != 0) { $bench->skip('mysql_fdw', 'it is not in this PostgreSQL: ' . ($err =~ /(.*)/)[0]); return 0; }
	my $columns_with_types = $postgres->psql("select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum) from pg_attribute where attrelid = 'benchop.model'::regclass and attnum > 0");
	($status, $out, $err) = $postgres->try_psql("create server fdw foreign data wrapper mysql_fdw options (host '127.0.0.1', port '" . $source->port . "', init_command 'set time_zone = ''+00:00''');\n"
		  . "create user mapping for public server fdw options (username '" . $source->user . "', password '" . $source->password . "');\n"
		  . "create foreign table benchop.foreign_item ($columns_with_types) server fdw options (dbname 'bench', table_name 'item');\n"
		  . 'select count(*) from (select * from benchop.foreign_item limit 1) x');
	if ($status != 0) { $bench->skip('mysql_fdw', "it does not work here: $err"); return 0; }
	return 1;
}

sub mysql_fdw_copy
{
	my $table = fresh_table('fdw');
	my $start = time();
	$session->ask("insert into $table select * from benchop.foreign_item");
	my $seconds = time() - $start;
	note_found('mysql_fdw', $table);
	return ($rows, $seconds);
}
